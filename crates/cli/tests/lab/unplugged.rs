//! The guest's module loses its device while events flow, by unbinding and by unplugging, and gets it back;
//! meanwhile the agent has the rest of the same memory mapped.

use std::path::Path;

use crate::hangs::Machines;
use crate::hypertrace::build_module;
use crate::recorded::{Recorded, events};
use crate::tool::{TestLab, can_run_all};

/// The address of the shared memory in the lab's guest.
const DEVICE: &str = "0000:00:10.0";
const BIND: &str =
    "d=/sys/bus/pci/drivers/hyperscope_guest; p=/sys/module/hyperscope_guest/parameters/probes;";
/// How often the device is removed and added while its guest works.
const ROUNDS: u32 = 20;

#[test]
fn the_module_lets_its_device_go_while_events_flow() {
    if !can_run_all() {
        return;
    }
    let mut machines = Machines::new(|| Recorded::up("unplugged"));
    if !build_module() {
        return;
    }
    machines.work(2, goes_and_comes_back);
}

fn goes_and_comes_back(recorded: &Recorded) {
    let lab = &recorded.lab;
    put_module(lab);
    // The agent is first: its mapping must keep working when another part is claimed.
    recorded.start_agent("shm");
    let recorder = recorded.begin("shm:/run/lab/l2/memory");
    let load = "(hyperscope-labguest measure ms=600000 switches=500 >/dev/null 2>&1 &)";
    let insert = "insmod /lab/hyperscope_guest.ko channel=shm probes=sched_switch,irq";
    lab.shell(2, &format!("dmesg -c >/dev/null; {load}; {insert}")).done();
    assert_claims_its_quarter(lab);
    assert_ne!(frames(lab), frames(lab), "no frame was stored");

    lab.shell(2, &format!("{BIND} echo {DEVICE} > $d/unbind")).done();
    assert_eq!(claims(lab), Vec::<(u64, u64)>::new());
    assert_eq!(frames(lab), frames(lab), "frames are stored without the device");
    let refused = lab.shell(2, &format!("{BIND} echo sched_switch > $p"));
    assert!(refused.stderr.contains("No such device"), "{}", refused.stderr);
    lab.shell(2, &format!("{BIND} echo {DEVICE} > $d/bind")).done();
    assert_claims_its_quarter(lab);
    assert_ne!(frames(lab), frames(lab), "no frame was stored after the device came back");

    let rounds = format!(
        "{BIND} for round in $(seq {ROUNDS}); do \
         echo {DEVICE} > $d/unbind || exit 1; [ -z \"$(cat $p)\" ] || exit 2; \
         echo {DEVICE} > $d/bind || exit 3; [ $(cat $p) = sched_switch,irq ] || exit 4; sleep 0.05; done"
    );
    lab.shell(2, &rounds).done();
    let (ended_well, messages) = recorded.end(recorder);
    assert!(ended_well, "{messages}");
    let (_, recorded_events) = events(&recorded.session().join("guest-l2.dat"));
    assert!(
        recorded_events > 1000 && messages.contains(" 0 events lost"),
        "{recorded_events}: {messages}"
    );

    // Unplugged and found again, now that no agent has it open.
    let again = format!(
        "killall hyperscope-agent; {BIND} echo 1 > /sys/bus/pci/devices/{DEVICE}/remove || exit 1; \
         [ -z \"$(cat $p)\" ] || exit 2; echo 1 > /sys/bus/pci/rescan; [ $(cat $p) = sched_switch,irq ] || exit 3"
    );
    lab.shell(2, &again).done();
    assert_claims_its_quarter(lab);
    lab.shell(2, &format!("{BIND} echo {DEVICE} > $d/unbind && rmmod hyperscope_guest")).done();
    assert_eq!(claims(lab), Vec::<(u64, u64)>::new());
    let log = "! dmesg | grep -iE 'warning|bug|oops|stall|call trace|fault'";
    lab.shell(2, log).done();
    eprintln!("{ROUNDS} rounds under load; the agent recorded {recorded_events} events meanwhile");
}

fn put_module(lab: &TestLab) {
    let release = lab.shell(2, "uname -r").done().stdout;
    let built = Path::new(env!("CARGO_BIN_EXE_hyperscope")).ancestors().nth(2).unwrap();
    let module = built.join("kmod").join(release.trim()).join("hyperscope_guest.ko");
    let module = module.to_str().unwrap();
    lab.run(&["put", "2", module, "/lab/hyperscope_guest.ko"]).done();
}

/// In the kernel's map, the module claims exactly the last quarter of the device's memory.
fn assert_claims_its_quarter(lab: &TestLab) {
    let map = lab.shell(2, "cat /proc/iomem").done().stdout;
    let bars = map.lines().filter(|line| line.trim_end().ends_with(DEVICE)).filter_map(range);
    let (first, last) = bars.max_by_key(|(first, last)| last - first).unwrap();
    let bytes = last - first + 1;
    assert_eq!(claims(lab), [(first + bytes / 4 * 3, last)], "{map}");
}

fn claims(lab: &TestLab) -> Vec<(u64, u64)> {
    let map = lab.shell(2, "cat /proc/iomem").done().stdout;
    map.lines().filter(|line| line.ends_with("hyperscope_guest")).filter_map(range).collect()
}

/// First and last address in a line of the kernel's map.
fn range(line: &str) -> Option<(u64, u64)> {
    let (first, last) = line.split_once(" : ")?.0.trim().split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some((number(first)?, number(last)?))
}

/// The content of the memory's last quarter, from its host, after half a second.
fn frames(lab: &TestLab) -> String {
    let sum = "sleep 0.5; dd if=/run/lab/l2/memory bs=1M skip=6 2>/dev/null | md5sum";
    lab.shell(1, sum).done().stdout
}
