//! Suggestions of advice that the lab can switch, with workloads to test them.

use analyses::advice::{Advice, SavingOf};
use lab::{Board, Net};

/// A suggestion to test.
#[derive(Debug)]
pub struct Switch {
    /// Its name on the command line and in reports.
    pub name: &'static str,
    /// A short description.
    pub what: &'static str,
    /// The rules of advice that suggest it; the verdict is about the first.
    pub(super) rules: &'static [&'static str],
    /// Suffixes of the titles of advice that it follows: a device, or a register's address. Empty: all advice of the
    /// rules.
    pub(super) titles: &'static [&'static str],
    pub(super) board: Board,
    /// The side that advice finds, and the side that it suggests.
    pub(super) sides: [Side; 2],
    /// The guest's workloads: usually three with advice, and one without.
    pub workloads: &'static [Workload],
}

/// One side of a switch.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) net: Option<Net>,
    /// QEMU options of the guest.
    pub(super) qemu: &'static str,
    /// Commands on the host before the guest boots.
    pub(super) host: &'static str,
    /// Commands in the guest before its workloads.
    pub(super) guest: &'static str,
    /// Commands on the host before the workloads.
    pub(super) meanwhile: &'static str,
}

/// A workload of a guest.
#[derive(Debug)]
pub struct Workload {
    pub name: &'static str,
    /// A shell script, with the same amount of work in each run.
    pub(super) script: &'static str,
}

const WRITE: Workload = Workload {
    name: "disk-write",
    script: "dd if=/dev/zero of=/dev/vda bs=4k count=300 oflag=direct",
};
const READ: Workload = Workload {
    name: "disk-read",
    script: "dd if=/dev/vda of=/dev/null bs=4k count=300 iflag=direct",
};
const PING: Workload = Workload { name: "ping", script: "ping -i 0.002 -c 200 10.77.2.1" };
const LARGE: Workload =
    Workload { name: "ping-1400", script: "ping -s 1400 -i 0.002 -c 200 10.77.2.1" };
const HTTP: Workload = Workload {
    name: "http",
    script: "i=0; while [ $i -lt 40 ]; do i=$((i+1)); wget -q -O /dev/null http://10.77.2.1/page; done",
};
const NAPS: Workload = Workload { name: "naps", script: "hyperscope-labguest exits nap=200" };
const PACED: Workload = Workload {
    name: "paced",
    script: "i=0; while [ $i -lt 100 ]; do i=$((i+1)); usleep 1500; done",
};
const FORKS: Workload = Workload {
    name: "forks",
    script: "i=0; while [ $i -lt 100 ]; do i=$((i+1)); busybox true; done",
};
const COMPUTE: Workload =
    Workload { name: "compute", script: "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done" };
const TMPFS: Workload =
    Workload { name: "memory-file", script: "dd if=/dev/zero of=/tmp/x bs=1M count=30" };
const CACHE: Workload =
    Workload { name: "page-cache", script: "dd if=/dev/vda of=/dev/null bs=1M count=30" };
const ANON: Workload =
    Workload { name: "heap", script: "head -c 20000000 /dev/zero | tail -n 1 | wc -c" };
const NUMBERS: Workload = Workload { name: "numbers", script: "seq 1 300 > /tmp/console" };
const LOG: Workload = Workload { name: "log", script: "dmesg | head -n 30 > /tmp/console" };
const LISTING: Workload =
    Workload { name: "listing", script: "ls -l /sys/class/tty | head -n 30 > /tmp/console" };

const PLAIN: Side = Side { net: None, qemu: "", host: "true", guest: "true", meanwhile: "true" };
const ON_NET: Side = Side { net: Some(Net::Virtio), ..PLAIN };

/// Suffixes of addresses of virtio-mmio's QueueNotify; devices have 512 bytes each.
const NOTIFY: &[&str] = &["50"];

/// Polls for half a millisecond whenever the guest waits for less than 2.5 ms.
const POLLS: &str = "cd /sys/module/kvm/parameters; echo 2500000 > halt_poll_ns; \
                     echo 1 > halt_poll_ns_grow; echo 500000 > halt_poll_ns_grow_start";
const NO_POLLS: &str = "echo 0 > /sys/module/kvm/parameters/halt_poll_ns";
const SMALL_PAGES: &str = "echo never > /sys/kernel/mm/transparent_hugepage/enabled";
/// A virtio console on the controller that the lab's guests have anyway.
const CONSOLE: &str = "-chardev null,id=hvc -device virtconsole,bus=ports.0,chardev=hvc";
const COMPETITOR: &str =
    "dd if=/dev/zero of=/dev/null bs=64k >/dev/null 2>&1 & echo $! > /tmp/competitor";

/// All of them.
pub static SWITCHES: [Switch; 12] = [
    Switch {
        name: "ioeventfd",
        what: "virtio-mmio notifies the kernel instead of the VMM",
        rules: &["device-address"],
        titles: NOTIFY,
        board: Board::Microvm,
        sides: [
            Side { qemu: "-global virtio-mmio.ioeventfd=off", ..ON_NET },
            Side { qemu: "-global virtio-mmio.ioeventfd=on", ..ON_NET },
        ],
        workloads: &[WRITE, READ, PING, COMPUTE],
    },
    Switch {
        name: "vhost",
        what: "the kernel handles packets instead of the VMM",
        rules: &["device-address"],
        titles: NOTIFY,
        board: Board::Microvm,
        sides: [
            Side { qemu: "-global virtio-mmio.ioeventfd=off", ..ON_NET },
            Side { qemu: "-global virtio-mmio.ioeventfd=off", net: Some(Net::Vhost), ..PLAIN },
        ],
        workloads: &[PING, LARGE, HTTP, COMPUTE],
    },
    Switch {
        name: "msi-x",
        what: "virtio-pci uses message-signalled interrupts instead of a line",
        rules: &["device-address", "interrupt-controller"],
        titles: &["1000", "5000", "9000", "d000", "leave the guest"],
        board: Board::Pc,
        sides: [
            Side {
                qemu: "-global virtio-net-pci.vectors=0 -global virtio-blk-pci.vectors=0",
                ..ON_NET
            },
            ON_NET,
        ],
        workloads: &[WRITE, READ, PING, COMPUTE],
    },
    Switch {
        name: "clock",
        what: "the guest uses KVM's clock instead of the ACPI PM timer",
        rules: &["legacy-port"],
        titles: &["the ACPI PM timer"],
        board: Board::Pc,
        sides: [
            Side {
                guest: "echo acpi_pm > /sys/devices/system/clocksource/clocksource0/current_clocksource",
                ..ON_NET
            },
            Side {
                guest: "echo kvm-clock > /sys/devices/system/clocksource/clocksource0/current_clocksource",
                ..ON_NET
            },
        ],
        workloads: &[NAPS, WRITE, PING, COMPUTE],
    },
    Switch {
        name: "console",
        what: "text goes to virtio's console instead of the serial port",
        rules: &["legacy-port"],
        titles: &["the serial port"],
        board: Board::Microvm,
        sides: [
            Side { qemu: CONSOLE, guest: "ln -s /dev/ttyS0 /tmp/console", ..PLAIN },
            Side { qemu: CONSOLE, guest: "ln -s /dev/hvc0 /tmp/console", ..PLAIN },
        ],
        workloads: &[NUMBERS, LOG, LISTING, COMPUTE],
    },
    Switch {
        name: "pv-eoi",
        what: "the guest ends interrupts by writing to memory shared with the host",
        rules: &["interrupt-controller"],
        titles: &[],
        board: Board::Pc,
        sides: [Side { qemu: "-global host-x86_64-cpu.kvm-pv-eoi=off", ..ON_NET }, ON_NET],
        workloads: &[NAPS, WRITE, PING, COMPUTE],
    },
    Switch {
        name: "halt-polling",
        what: "the host doesn't poll before it releases a CPU",
        rules: &["halt-polling"],
        titles: &[],
        board: Board::Pc,
        sides: [Side { host: POLLS, ..ON_NET }, Side { host: NO_POLLS, ..ON_NET }],
        workloads: &[NAPS, PACED, PING, COMPUTE],
    },
    Switch {
        name: "usual-polling",
        what: "the host, which polls as usual, doesn't poll at all: no advice is due",
        rules: &["halt-polling"],
        titles: &[],
        board: Board::Pc,
        sides: [ON_NET, Side { host: NO_POLLS, ..ON_NET }],
        workloads: &[NAPS, WRITE, PING, COMPUTE],
    },
    Switch {
        name: "vhost-msi-x",
        what: "vhost, if notifications and interrupts already bypass the VMM: no advice is due",
        rules: &["device-address"],
        titles: &[],
        board: Board::Pc,
        sides: [ON_NET, Side { net: Some(Net::Vhost), ..PLAIN }],
        workloads: &[PING, LARGE, HTTP, COMPUTE],
    },
    Switch {
        name: "huge-pages",
        what: "the host backs the guest's memory with transparent huge pages",
        rules: &["memory-faults"],
        titles: &[],
        board: Board::Microvm,
        sides: [Side { host: SMALL_PAGES, ..PLAIN }, PLAIN],
        workloads: &[TMPFS, CACHE, ANON, COMPUTE],
    },
    Switch {
        name: "memory-in-advance",
        what: "the guest's memory is allocated before it starts, in small pages",
        rules: &["memory-faults"],
        titles: &[],
        board: Board::Microvm,
        sides: [
            Side { host: SMALL_PAGES, ..PLAIN },
            Side { host: SMALL_PAGES, qemu: "-overcommit mem-lock=on", ..PLAIN },
        ],
        workloads: &[TMPFS, CACHE, ANON, COMPUTE],
    },
    Switch {
        name: "cpu-weight",
        what: "another program on the guest's CPU has a lower weight",
        rules: &["preempted-vcpus"],
        titles: &[],
        board: Board::Microvm,
        sides: [
            Side { meanwhile: COMPETITOR, ..ON_NET },
            Side {
                meanwhile: "dd if=/dev/zero of=/dev/null bs=64k >/dev/null 2>&1 & echo $! > /tmp/competitor; renice -n 19 -p $!",
                ..ON_NET
            },
        ],
        workloads: &[COMPUTE, FORKS, HTTP, NAPS],
    },
];

impl Switch {
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        SWITCHES.iter().find(|switch| switch.name == name)
    }

    /// The rule that the verdict is about.
    #[must_use]
    pub fn rule(&self) -> &'static str {
        self.rules.first().copied().unwrap_or_default()
    }

    /// The base of its savings.
    pub(super) fn saving_of(&self) -> SavingOf {
        if self.rule() == "preempted-vcpus" { SavingOf::Waiting } else { SavingOf::Cost }
    }

    /// The name of the base in predictions and reports.
    pub(super) fn whole_name(&self) -> &'static str {
        if self.saving_of() == SavingOf::Waiting { "waiting" } else { "outside" }
    }

    /// Whether it follows a piece of advice.
    pub(super) fn concerns(&self, advice: &Advice) -> bool {
        let ends = || self.titles.iter().any(|end| advice.title.ends_with(*end));
        self.rules.contains(&advice.rule) && (self.titles.is_empty() || ends())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_follow_rules_that_there_are() {
        for switch in &SWITCHES {
            let is_rule =
                |name: &&str| analyses::advice::RULES.iter().any(|rule| rule.name == *name);
            assert!(
                !switch.rules.is_empty() && switch.rules.iter().all(is_rule),
                "{}",
                switch.name
            );
            assert_eq!(switch.workloads.len(), 4, "{}", switch.name);
            assert!(std::ptr::eq(Switch::named(switch.name).unwrap(), switch));
        }
        assert!(Switch::named("").is_none());
    }
}
