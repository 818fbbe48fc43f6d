//! The lab's host and guest, ready to be recorded again and again.

use std::path::Path;
use std::time::Duration;

use lab::Lab;

use super::draw::PROGRAMS;
use super::effect::Counters;
use crate::bench::machines::{BootedMachine, BootedMachines, Running, agent, hyperscope};
use crate::bench::{BenchError, Result};

/// How long a script may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// Where files of recordings go.
pub(super) const FOLDER: &str = "/tmp/corpus";

/// Symbols of modules alone: those of the whole kernel are larger than a recording. The tracer's control group is at hand.
const PREPARE: &str = "mkdir -p /tmp/corpus
grep -E '\\[(kvm|kvm_amd|kvm_intel|vhost[a-z_]*|tun|virtio[a-z_]*)\\]' /proc/kallsyms > /tmp/kallsyms
mount --bind /tmp/kallsyms /proc/kallsyms
mkdir -p /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup 2>/dev/null; true";
/// What the agent says once it waits.
const WAITING: &str = "waiting on";
/// The guest's end of its network, where it has one.
const CONNECT: &str = "if [ -e /sys/class/net/eth0 ]; then ip address add 10.77.2.2/24 dev eth0; \
    ip link set eth0 up; ping -c 1 10.77.2.1 >/dev/null; fi";
/// Names that scripts of the host can use.
const NAMES: &str = "QEMU=$(pidof qemu-system-x86_64 | cut -d' ' -f1); VHOST=
ALL=$(printf %x $(((1 << $(nproc)) - 1)))
for task in /proc/$QEMU/task/*; do read -r name < $task/comm; case \"$name\" in
\"CPU 0/KVM\") VCPU0=${task##*/};; \"CPU 1/KVM\") VCPU1=${task##*/};; esac; done
for file in /proc/[0-9]*/comm; do read -r name < $file 2>/dev/null; case \"$name\" in
vhost-*) file=${file%/comm}; VHOST=\"$VHOST ${file##*/}\";; esac; done
";

/// Host and guest of a lab that is up.
pub(super) struct CorpusMachines {
    lab: Lab,
    host: BootedMachine,
    guest: BootedMachine,
    nested: Option<BootedMachine>,
    pub(super) kernel_release: String,
    /// The process on this system that executes them.
    executor: Option<i32>,
}

impl CorpusMachines {
    /// Puts programs into the machines of a lab.
    pub(super) fn set_up(lab: &Lab) -> Result<Self> {
        let mut host = prepared(lab, 1)?;
        host.put(&hyperscope()?, "/bin/hyperscope")?;
        let kernel_release = host.shell("uname -r")?.trim().to_owned();
        let guest = prepared_guest(lab)?;
        let nested = (lab.description()?.levels > 2).then(|| prepared(lab, 3)).transpose()?;
        let executor = lab.status()?.pid;
        Ok(Self { lab: lab.clone(), host, guest, nested, kernel_release, executor })
    }

    /// Boots another guest in place of this one.
    pub(super) fn renew_guest(&mut self) -> Result<()> {
        self.lab.replace_guest(&self.lab.description()?)?;
        self.guest = prepared_guest(&self.lab)?;
        Ok(())
    }

    /// Runs a script in the host that must succeed; what it prints.
    pub(super) fn in_host(&mut self, script: &str) -> Result<String> {
        if script.is_empty() {
            Ok(String::new())
        } else {
            self.host.shell(&format!("{NAMES}{script}"))
        }
    }

    /// The same in the guest.
    pub(super) fn in_guest(&mut self, script: &str) -> Result<String> {
        if script.is_empty() { Ok(String::new()) } else { self.guest.shell(script) }
    }

    /// The same in the guest's guest.
    pub(super) fn in_nested_guest(&mut self, script: &str) -> Result<String> {
        match &mut self.nested {
            Some(nested) => nested.shell(script),
            None => {
                Err(BenchError::Malformed { what: "a cause", text: "it needs 3 levels".into() })
            }
        }
    }

    /// Starts a script in the host in the background, and waits until a condition of the shell holds.
    pub(super) fn start_until(
        &mut self,
        script: &str,
        log: &str,
        condition: &str,
    ) -> Result<Running> {
        self.host.start_until(&format!("{NAMES}{script}"), log, condition)
    }

    /// Starts a script in the host in the background.
    pub(super) fn start(&mut self, script: &str, log: &str) -> Result<Running> {
        self.host.start_detached(&format!("{NAMES}{script}"), log)
    }

    /// Ends a script with all that it has started.
    pub(super) fn end(&mut self, running: Running, signal: &str) -> Result<()> {
        self.host.end_group(running, signal)
    }

    /// The host's counters.
    pub(super) fn host_counters(&mut self) -> Result<Counters> {
        counters(&mut self.host)
    }

    /// The guest's counters.
    pub(super) fn guest_counters(&mut self) -> Result<Counters> {
        counters(&mut self.guest)
    }

    /// Copies a file out of the host.
    pub(super) fn get(&mut self, from: &str, to: &Path) -> Result<()> {
        self.host.get(from, to)
    }

    /// For how long the threads that execute the machines have waited for a CPU of this system.
    pub(super) fn disturbed_ns(&self) -> u64 {
        BootedMachines::executor_waits_ns(self.executor)
    }
}

/// What both machines need.
fn prepare() -> String {
    let links = PROGRAMS.map(|name| format!("ln -sf /init /bin/{name}\n")).concat();
    format!("{links}{PREPARE}")
}

/// A machine in which scripts find what they use.
fn prepared(lab: &Lab, level: u8) -> Result<BootedMachine> {
    let mut machine = BootedMachine::at_level(lab, level)?.with_patience(PATIENCE);
    machine.shell(&prepare())?;
    Ok(machine)
}

/// The guest, with an agent that waits for the recorder.
fn prepared_guest(lab: &Lab) -> Result<BootedMachine> {
    let mut guest = prepared(lab, 2)?;
    guest.put(&agent(&hyperscope()?)?, "/bin/hyperscope-agent")?;
    guest.shell(CONNECT)?;
    guest.start("exec /bin/hyperscope-agent vsock", "/tmp/agent.log", WAITING)?;
    Ok(guest)
}

/// Reads a machine's counters.
fn counters(machine: &mut BootedMachine) -> Result<Counters> {
    let text = machine.shell("hyperscope-labguest counters")?;
    serde_json::from_str(&text).map_err(BenchError::malformed("hyperscope-labguest counters"))
}
