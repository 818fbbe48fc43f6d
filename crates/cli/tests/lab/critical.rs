//! `hyperscope critical` on a real KVM host: a guest's thread that only waits for another one with known behaviour; a
//! host's program that takes its vCPU's processor; a disk with a known delay.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::recorded::{Recorded, json};
use crate::tool::{can_run_all, folder};

/// How often the thread waits for the other one.
const ROUNDS: u64 = 40;
const CPUIDS: u64 = 5;
const NAP_US: u64 = 20_000;
const BUSY_US: u64 = 8_000;
/// Number of requests to the disk.
const REQUESTS: u64 = 100;
const DISK_NS: u64 = 3_000_000;
/// The thread lives longer than its requests.
const AROUND_NS: u64 = 100_000_000;
/// Error of a processor's steal time at each end, as its guest counts it.
const TICK_NS: u64 = 10_000_000;
/// All events that show causes of waits, on both sides.
const RECORDED: &str = "--guest-event sched --guest-event irq --guest-event timer \
                        -e kvm -e sched -e irq -e timer -e block";

/// Pins processors of level 1: the guest's first vCPU shares the second one only with the program that takes it away.
const PIN: &str = "for t in /proc/$(pidof qemu-system-x86_64)/task/*; do \
                   case \"$(cat $t/comm)\" in 'CPU 0'*) taskset -p 2 ${t##*/};; esac; done";

fn ns(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or_else(|| panic!("no {name} in {value}"))
}

/// A task's waits; sums of chosen parts, with their number of intervals.
struct Found(Value);

impl Found {
    fn for_task(session: &Path, task: &str) -> Self {
        let found =
            json(&["critical", "--task", task, "--format", "json", session.to_str().unwrap()]);
        let found = Self(found);
        let waited_ns: u64 = found.threads().map(|thread| ns(thread, "waited_ns")).sum();
        assert_eq!(found.sum(|_| true).0, waited_ns, "{:#}", found.0);
        found
    }

    fn threads(&self) -> impl Iterator<Item = &Value> {
        self.0["threads"].as_array().unwrap().iter()
    }

    fn sum(&self, is_counted: impl Fn(&Value) -> bool) -> (u64, u64) {
        let parts = self.0["parts"].as_array().unwrap().iter().filter(|part| is_counted(part));
        parts.fold((0, 0), |(time_ns, count), part| {
            (time_ns + ns(part, "time_ns"), count + ns(part, "count"))
        })
    }

    fn part(&self, thread: &str, state: &str, reason: Option<&str>) -> (u64, u64) {
        self.sum(|part| {
            part["thread"] == thread && part["state"] == state && part["reason"].as_str() == reason
        })
    }
}

/// A thread of a guest waits for another one that works, sleeps, and makes exits, while a program of level 1 may take
/// the vCPU's processor. Compares their own measurements with the thread's waits.
fn hands_over(name: &'static str, what: &str, taker: Option<&str>) -> (Value, Found) {
    let recorded = Recorded::up(name);
    recorded.lab.shell(1, PIN).done();
    recorded.start_agent("vsock");
    let recorder = recorded.begin_with("vsock:3", RECORDED);
    if let Some(taker) = taker {
        let script = format!("taskset 2 {taker} >/dev/null 2>&1 & echo $! >/tmp/pid");
        recorded.lab.shell(1, &script).done();
    }
    let script = format!("taskset 1 hyperscope-labguest handoff rounds={ROUNDS} {what}");
    let report = serde_json::from_str(&recorded.lab.shell(2, &script).done().stdout).unwrap();
    if taker.is_some() {
        recorded.lab.shell(1, "kill $(cat /tmp/pid)").done();
    }
    let (ended, log) = recorded.end(recorder);
    assert!(ended, "{log}");
    (report, Found::for_task(&recorded.session(), "l2/asker"))
}

#[test]
fn what_a_guests_thread_waits_for_is_what_the_other_one_did() {
    if !can_run_all() {
        return;
    }
    let exits = format!("busy-us={BUSY_US} nap-us={NAP_US} cpuid={CPUIDS}");
    let (report, found) = hands_over("critical", &exits, None);
    let [asker] = found.0["threads"].as_array().unwrap().as_slice() else {
        panic!("{:#}", found.0)
    };
    let (wall_ns, asked_ns) = (ns(asker, "wall_ns"), ns(&report, "waited_ns"));
    assert!((asked_ns..asked_ns + AROUND_NS).contains(&wall_ns), "{report} {asker}");
    // It sleeps in each round, and no longer than it measured itself.
    let (timer_ns, naps) = found.part("answerer", "blocked", Some("timer"));
    assert_eq!(naps, ROUNDS, "{:#}", found.0);
    assert!(
        (ROUNDS * NAP_US * 1000 * 9 / 10..=ns(&report, "napped_ns")).contains(&timer_ns),
        "{timer_ns} {report}"
    );
    // Each CPUID is waited for; a guest's kernel makes hardly any.
    let cpuid = found.sum(|part| part["state"] == "exit_kernel" && part["reason"] == "cpuid");
    assert!((ROUNDS * CPUIDS..ROUNDS * CPUIDS + 10).contains(&cpuid.1), "{cpuid:?}");
    assert!(cpuid.0 <= ns(&report, "exits_ns"), "{cpuid:?} {report}");
    // It works until a clock tells it to stop: most of its running time.
    let (ran_ns, _) = found.part("answerer", "running", None);
    let most_ns = asked_ns - ns(&report, "napped_ns");
    assert!((ROUNDS * BUSY_US * 1000 / 2..most_ns).contains(&ran_ns), "{ran_ns} {report}");
}

#[test]
fn who_took_the_processor_of_a_vcpu_is_waited_for_as_long_as_the_guest_says() {
    if !can_run_all() {
        return;
    }
    let (report, found) = hands_over("critical-taken", "busy-us=30000", Some("yes"));
    let stolen_ns = ns(&report, "stolen_ns");
    let (taken_ns, times) = found.sum(|part| {
        let is_taken = part["state"] == "preempted" || part["state"] == "waiting";
        part["machine"] == "host" && is_taken && part["thread"] == "l2 vCPU 0"
    });
    let (by_it_ns, _) = found.part("l2 vCPU 0", "preempted", Some("yes"));
    eprintln!(
        "{report}: stolen {stolen_ns}, taken {taken_ns}, {times} times, {by_it_ns} by the program"
    );
    // The guest's kernel counts steal time at its ticks.
    assert!(taken_ns.abs_diff(stolen_ns) < 2 * TICK_NS + stolen_ns / 5, "{:#}", found.0);
    // Both want the processor all the time, and get half of it each.
    assert!(by_it_ns > taken_ns / 2 && by_it_ns > ns(&report, "waited_ns") / 4, "{:#}", found.0);
}

/// A file of a module of the lab's kernel.
fn module(name: &str) -> Option<PathBuf> {
    let mut open = vec![folder().join("packages")];
    while let Some(path) = open.pop() {
        for entry in std::fs::read_dir(&path).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(entry.path()),
                _ if entry.file_name() == name => return Some(entry.path()),
                _ => {}
            }
        }
    }
    None
}

#[test]
fn a_disk_is_waited_for_as_long_as_it_takes() {
    if !can_run_all() {
        return;
    }
    let recorded = Recorded::up("critical-disk");
    let [Some(disk), Some(configfs)] = ["null_blk.ko", "configfs.ko"].map(module) else {
        return testkit::skip!("the lab's kernel has no disk of known time");
    };
    for (file, parameters) in [
        (&configfs, String::new()),
        (&disk, format!("irqmode=2 queue_mode=2 nr_devices=1 gb=1 completion_nsec={DISK_NS}")),
    ] {
        recorded.lab.run(&["put", "1", file.to_str().unwrap(), "/tmp/module.ko"]).done();
        recorded.lab.shell(1, &format!("insmod /tmp/module.ko {parameters}")).done();
    }
    let number = recorded.lab.shell(1, "cat /sys/block/nullb0/dev").done().stdout;
    let script = format!(
        "rm -rf /tmp/r; hyperscope record -e sched -e irq -e timer -e block -o /tmp/r -- \
         dd if=/dev/nullb0 of=/dev/null bs=4096 count={REQUESTS} iflag=direct; \
         hyperscope critical --task dd --format json /tmp/r"
    );
    let output = recorded.lab.shell(1, &script).done();
    let found = Found(serde_json::from_str(&output.stdout).unwrap());
    let (waited_ns, requests) =
        found.part("dd", "blocked", Some(&format!("disk {}", number.trim())));
    assert_eq!(requests, REQUESTS, "{:#}", found.0);
    let exact_ns = REQUESTS * DISK_NS;
    // It starts to sleep a little after the disk begins, and wakes later if the disk's timer is late.
    assert!((exact_ns * 9 / 10..exact_ns * 3 / 2).contains(&waited_ns), "{waited_ns}");
}
