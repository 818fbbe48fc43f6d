//! Waits of tasks in synthetic histories with known results.

use std::collections::BTreeMap;

use analyses::align::{Method, align};
use analyses::critical::{
    Critical, CriticalOf, CriticalState as S, CriticalTask, CriticalThread, NoSuchTask, critical,
};
use analyses::view::View;
use raw_bytes::ByteOrder::Little;
use sources::Recording;
use testkit::Random;
use tracedat::{Guest, GuestCpu, ShiftSample, TimeShift, id, option};

use crate::machinery::Machinery;

const VCPU: i32 = 100;
const VHOST: i32 = 90;
const SERVER: i32 = 50;
const OTHER: i32 = 51;
const DD: i32 = 7;
const IDLE: i32 = 0;
const SLEEPS: u64 = 1;
const RUNNABLE: u64 = 0;
const HARDIRQ: u64 = 8;
const HLT: u64 = 0x78;
const NPF: u64 = 0x400;
const HOST_ID: u64 = 0xbeef;
const GUEST_ID: u64 = 0xfeed;

/// A machine with synthetic events.
struct Made(Machinery);

impl Made {
    fn new(cmdlines: &str) -> Self {
        let mut machine = Machinery::new("local");
        machine.cmdlines = cmdlines.to_owned();
        Self(machine)
    }

    fn host() -> Self {
        Self::new("100 qemu\n90 vhost-80\n50 server\n51 other\n52 third\n")
    }

    fn event(
        &mut self,
        cpu: u32,
        ns: u64,
        pid: i32,
        name: &str,
        fields: &[(&str, u64)],
    ) -> &mut Self {
        self.0.event(cpu, ns, pid, name, fields);
        self
    }

    fn switch(&mut self, cpu: u32, ns: u64, prev: i32, state: u64, next: i32) -> &mut Self {
        let fields = [("prev_pid", prev as u64), ("prev_state", state), ("next_pid", next as u64)];
        self.event(cpu, ns, prev, "sched_switch", &fields)
    }

    fn wake(&mut self, cpu: u32, ns: u64, waker: i32, woken: i32) -> &mut Self {
        self.event(cpu, ns, waker, "sched_waking", &[("pid", woken as u64)])
    }

    fn wake_in_interrupt(&mut self, cpu: u32, ns: u64, runs: i32, woken: i32) -> &mut Self {
        let fields = [("pid", woken as u64), ("common_flags", HARDIRQ)];
        self.event(cpu, ns, runs, "sched_waking", &fields)
    }

    fn entry(&mut self, cpu: u32, ns: u64) -> &mut Self {
        self.event(cpu, ns, VCPU, "kvm_entry", &[("vcpu_id", 0)])
    }

    fn exit(&mut self, cpu: u32, ns: u64, reason: u64) -> &mut Self {
        self.event(cpu, ns, VCPU, "kvm_exit", &[("exit_reason", reason), ("isa", 2)])
    }

    fn inject(&mut self, cpu: u32, ns: u64, by: i32) -> &mut Self {
        self.event(cpu, ns, by, "kvm_apic_accept_irq", &[("apicid", 0), ("vec", 33)])
    }
}

fn critical_of_task(recordings: &mut [Recording], task: &str) -> Result<Critical, NoSuchTask> {
    let guests = match recordings.len() {
        1 => Vec::new(),
        _ => align(recordings, Some(Method::TimeShift), &|_| ()),
    };
    guests.iter().for_each(|guest| guest.apply(&mut recordings[guest.guest]));
    let target = CriticalOf::Task(CriticalTask(task.to_owned()));
    let found = critical(View::new(recordings, &guests), &target, &|_| ())?;
    check(&found);
    Ok(found)
}

/// Invariants: parts add up to the wait time, and a thread's times to its total.
fn check(found: &Critical) {
    let parts: u64 = found.parts.iter().map(|part| part.time_ns).sum();
    assert_eq!(parts, found.waited_ns());
    assert!(found.parts.iter().all(|part| part.time_ns > 0 && part.count > 0));
    for CriticalThread { wall_ns, ran_ns, waited_ns, unknown_ns, off_cpu_ns, .. } in &found.threads
    {
        assert_eq!(*wall_ns, ran_ns + waited_ns + unknown_ns);
        assert!(*off_cpu_ns <= waited_ns + unknown_ns);
    }
    for wait in found.longest.iter().filter(|wait| !wait.is_cut) {
        // Steps are in order and without gaps, and cover the wait.
        let mut now_ns = wait.from_ns;
        for step in &wait.steps {
            assert_eq!(step.from_ns, now_ns);
            assert!(step.to_ns > step.from_ns);
            now_ns = step.to_ns;
        }
        assert_eq!(now_ns, wait.to_ns);
    }
}

type Part<'f> = (&'f str, &'f str, S, Option<&'f str>, u64);

fn parts(found: &Critical) -> Vec<Part<'_>> {
    let parts = found.parts.iter().map(|part| {
        let reason = part.reason.as_deref();
        (part.machine.as_str(), part.thread.as_str(), part.state, reason, part.time_ns)
    });
    let mut parts: Vec<_> = parts.collect();
    parts.sort_unstable();
    parts
}

fn sorted<'p>(expected: &[Part<'p>]) -> Vec<Part<'p>> {
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    expected
}

/// The server waits for a second thread, which waits for a third one; then it waits for a busy CPU.
#[test]
fn a_chain_of_wake_ups_is_followed_to_its_end() {
    let mut host = Made::host();
    host.switch(1, 500, IDLE, 0, OTHER);
    host.switch(0, 1_000, SERVER, SLEEPS, 52);
    // The second thread sleeps from 1,100 to 1,400; the third one wakes it, and was running before.
    host.switch(1, 1_100, OTHER, SLEEPS, IDLE);
    host.wake(0, 1_400, 52, OTHER).switch(1, 1_450, IDLE, 0, OTHER);
    host.wake(1, 1_700, OTHER, SERVER);
    host.switch(0, 1_900, 52, RUNNABLE, SERVER);
    host.switch(0, 2_000, SERVER, SLEEPS, IDLE);
    let found = critical_of_task(&mut [host.0.recording()], "server").unwrap();
    let expected = [
        ("host", "other", S::Running, None, 100 + 250),
        ("host", "third", S::Running, None, 300),
        ("host", "other", S::Waiting, Some("idle"), 50),
        ("host", "server", S::Waiting, Some("third"), 200),
    ];
    assert_eq!(parts(&found), sorted(&expected));
    let [thread] = &found.threads[..] else { panic!("{:?}", found.threads) };
    assert_eq!((thread.ran_ns, thread.waited_ns, thread.waits), (100, 900, 1));
    let [wait] = &found.longest[..] else { panic!("{:?}", found.longest) };
    let order: Vec<(&str, u64)> =
        wait.steps.iter().map(|step| (step.part.thread.as_str(), step.part.time_ns)).collect();
    let expected = [("other", 100), ("third", 300), ("other", 50), ("other", 250), ("server", 200)];
    assert_eq!(order, expected);
}

/// Time without an explaining event is a part with a specific reason.
#[test]
fn ends_have_names() {
    let reason_of = |record: fn(&mut Made)| {
        let mut host = Made::host();
        host.switch(1, 500, IDLE, 0, OTHER).switch(0, 1_000, SERVER, SLEEPS, IDLE);
        record(&mut host);
        host.switch(0, 2_000, SERVER, SLEEPS, IDLE);
        let found = critical_of_task(&mut [host.0.recording()], "server").unwrap();
        let reasons = found.parts.iter().filter(|part| part.state == S::Blocked);
        let reasons: Vec<_> = reasons.filter_map(|part| part.reason.clone()).collect();
        (reasons, found.threads[0].unknown_ns)
    };
    let no_wake = reason_of(|host| {
        host.switch(0, 1_900, IDLE, 0, SERVER);
    });
    assert_eq!(no_wake, (vec!["no wake-up event".to_owned()], 0));
    let interrupt = reason_of(|host| {
        host.event(0, 1_700, IDLE, "irq_handler_entry", &[("irq", 9)]);
        host.wake_in_interrupt(0, 1_800, IDLE, SERVER).switch(0, 1_900, IDLE, 0, SERVER);
    });
    assert_eq!(interrupt, (vec!["irq 9".to_owned()], 0));
    let lost = reason_of(|host| {
        host.0.lose(1);
        host.event(1, 1_500, OTHER, "irq_handler_entry", &[("irq", 9)]);
        host.wake(1, 1_600, OTHER, SERVER).switch(0, 1_900, IDLE, 0, SERVER);
    });
    // While events are missing, the thread may have been woken and have run: its state is unknown until the next
    // wake-up.
    assert_eq!(lost, (Vec::new(), 600));
    let asleep = critical_of_task(
        &mut [{
            let mut host = Made::host();
            host.switch(0, 1_000, SERVER, SLEEPS, IDLE).switch(0, 1_500, IDLE, 0, OTHER);
            host.0.recording()
        }],
        "50",
    );
    let expected =
        ("host", "server", S::Blocked, Some("not woken before the recording ended"), 500);
    assert_eq!(parts(&asleep.unwrap()), [expected]);
}

/// Each thread waits for the next one: the walk stops at the max depth of its stack.
#[test]
fn long_chains_end_in_a_part_of_that_name() {
    let mut host = Made::host();
    let all = 2_000..2_100;
    for thread in all.clone() {
        host.switch(0, thread, thread as i32, SLEEPS, IDLE);
    }
    for (thread, ns) in all.clone().rev().zip((10_000..).step_by(100)) {
        host.wake(0, ns, if thread == 2_099 { OTHER } else { thread as i32 + 1 }, thread as i32);
        host.switch(0, ns + 50, IDLE, 0, thread as i32);
        host.event(0, ns + 60, thread as i32, "irq_handler_entry", &[("irq", 9)]);
    }
    let found = critical_of_task(&mut [host.0.recording()], "2000").unwrap();
    assert!(found.parts.iter().any(|part| part.reason.as_deref() == Some("too deep")));
}

#[test]
fn a_task_that_is_not_there_is_said() {
    let mut host = Made::host();
    host.switch(0, 1_000, SERVER, SLEEPS, OTHER);
    let none = critical_of_task(&mut [host.0.recording()], "nginx").unwrap_err();
    let known: Vec<_> =
        none.known.iter().map(|(machine, name)| format!("{machine}/{name}")).collect();
    assert_eq!(known, ["host/server", "host/other"]);
}

/// A host and its guest on one clock, with two CPUs each.
fn two(mut host: Made, mut guest: Made) -> [Recording; 2] {
    let cpus = |at: u32| GuestCpu { cpu: at, pid: 100 + at };
    let named =
        Guest { name: "web".to_owned(), trace_id: GUEST_ID, vcpus: (0..2).map(cpus).collect() };
    host.0.options.push((id::TRACEID, option::trace_id(Little, HOST_ID)));
    host.0.options.push((id::GUEST, option::guest(Little, &named)));
    guest.0.options.push((id::TRACEID, option::trace_id(Little, GUEST_ID)));
    let sample = |time| ShiftSample { time, offset: 0, scaling: 1, fraction: 0 };
    let cpus = vec![vec![sample(0), sample(1 << 40)]; 2];
    let shift = TimeShift { peer: HOST_ID, flags: 1, cpus };
    guest.0.options.push((id::TIME_SHIFT, option::time_shift(Little, &shift)));
    [host.0.recording(), guest.0.recording()]
}

/// A guest's task reads from its disk: kick, worker, interrupt, and the parts of each layer.
#[test]
fn a_wait_is_followed_through_guest_and_host() {
    let (mut host, mut guest) = (Made::host(), Made::new("7 dd\n"));
    host.switch(1, 900, VHOST, SLEEPS, IDLE);
    host.entry(0, 1_000);
    guest.switch(0, 1_010, IDLE, 0, DD);
    host.exit(0, 2_000, NPF).wake(0, 2_010, VCPU, VHOST).entry(0, 2_020);
    guest.switch(0, 2_030, DD, SLEEPS, IDLE);
    host.exit(0, 2_040, HLT).switch(0, 2_050, VCPU, SLEEPS, IDLE);
    host.switch(1, 2_100, IDLE, 0, VHOST);
    host.inject(1, 2_500, VHOST).wake(1, 2_510, VHOST, VCPU);
    host.switch(0, 2_600, IDLE, 0, VCPU).entry(0, 2_650);
    guest.event(0, 2_660, IDLE, "irq_handler_entry", &[("irq", 27)]);
    guest.wake_in_interrupt(0, 2_680, IDLE, DD);
    guest.event(0, 2_690, IDLE, "irq_handler_exit", &[("irq", 27)]);
    guest.switch(0, 2_700, IDLE, 0, DD);
    guest.switch(0, 3_000, DD, SLEEPS, IDLE);
    host.exit(0, 3_100, HLT);
    let found = critical_of_task(&mut two(host, guest), "web/dd").unwrap();
    let expected = [
        // The exit of the kick itself.
        ("host", "web vCPU 0", S::ExitKernel, Some("npf"), 20),
        ("host", "vhost-80", S::Waiting, Some("idle"), 70),
        ("host", "vhost-80", S::Running, None, 400 + 10),
        ("host", "web vCPU 0", S::Waiting, Some("idle"), 90),
        ("host", "web vCPU 0", S::ExitKernel, Some("hlt"), 50),
        ("web", "vCPU 0", S::GuestIdle, None, 10),
        ("web", "interrupt", S::Interrupt, Some("irq 27"), 20),
        ("web", "dd", S::Waiting, Some("idle"), 20),
    ];
    assert_eq!(parts(&found), sorted(&expected));
    let [thread] = &found.threads[..] else { panic!("{:?}", found.threads) };
    assert_eq!((thread.ran_ns, thread.unknown_ns), (990 + 10 + 300, 0));
    assert_eq!((thread.off_cpu_ns, thread.waits), (670, 1));
}

/// A guest that handles an interrupt after more exits than the search goes back: the vector identifies the thread
/// that raised it.
#[test]
fn a_late_interrupt_is_found_by_its_vector() {
    let waits = |is_injected: bool| {
        let (mut host, mut guest) = (Made::host(), Made::new("7 dd\n"));
        host.switch(1, 900, VHOST, SLEEPS, IDLE);
        host.entry(0, 1_000);
        guest.switch(0, 1_010, IDLE, 0, DD);
        host.exit(0, 2_000, NPF).wake(0, 2_010, VCPU, VHOST).entry(0, 2_020);
        guest.switch(0, 2_030, DD, SLEEPS, 8);
        host.switch(1, 2_100, IDLE, 0, VHOST);
        host.inject(1, 2_500, VHOST).switch(1, 2_520, VHOST, SLEEPS, IDLE);
        // Another interrupt's injections, by the vCPU itself, while the first one is still pending.
        for at in 0..8 {
            host.exit(0, 3_000 + 100 * at, NPF).entry(0, 3_020 + 100 * at);
        }
        host.exit(0, 4_000, NPF);
        if is_injected {
            host.event(0, 4_005, VCPU, "kvm_inj_virq", &[("vector", 33)]);
        }
        host.entry(0, 4_010);
        guest.event(0, 4_100, 8, "irq_handler_entry", &[("irq", 27)]);
        let flags = [("pid", DD as u64), ("common_flags", HARDIRQ)];
        guest.event(0, 4_150, 8, "sched_waking", &flags);
        guest.event(0, 4_160, 8, "irq_handler_exit", &[("irq", 27)]);
        guest.switch(0, 4_200, 8, RUNNABLE, DD).switch(0, 4_300, DD, SLEEPS, IDLE);
        host.exit(0, 4_400, HLT);
        critical_of_task(&mut two(host, guest), "web/dd").unwrap()
    };
    let of_vhost = ("host", "vhost-80", S::Running, None, 400);
    assert!(parts(&waits(true)).contains(&of_vhost), "{:?}", parts(&waits(true)));
    let found = waits(false);
    assert!(!parts(&found).iter().any(|part| part.1 == "vhost-80"), "{:?}", parts(&found));
}

/// While its vCPU has no CPU, a guest's task waits for the thread on that CPU, though the guest considers the task
/// running.
#[test]
fn a_preempted_vcpu_is_its_guests_wait() {
    let (mut host, mut guest) = (Made::host(), Made::new("7 dd\n"));
    host.entry(0, 1_000);
    guest.switch(0, 1_010, IDLE, 0, DD);
    host.exit(0, 1_100, 0x60).switch(0, 1_110, VCPU, RUNNABLE, OTHER);
    host.switch(0, 1_510, OTHER, RUNNABLE, VCPU).entry(0, 1_520);
    guest.switch(0, 1_600, DD, SLEEPS, IDLE);
    host.exit(0, 1_700, HLT);
    let found = critical_of_task(&mut two(host, guest), "dd").unwrap();
    let expected = [
        ("host", "web vCPU 0", S::ExitKernel, Some("interrupt"), 20),
        ("host", "web vCPU 0", S::Preempted, Some("other"), 400),
    ];
    assert_eq!(parts(&found), sorted(&expected));
    assert_eq!((found.threads[0].ran_ns, found.threads[0].off_cpu_ns), (170, 0));
}

/// Simulates machines with random but valid events.
struct Life {
    random: Random,
    /// The current thread by CPU.
    runs: [i32; 2],
    /// Sleeping threads, and runnable ones.
    sleep: Vec<i32>,
    ready: Vec<i32>,
}

impl Life {
    fn new(seed: u64, threads: &[i32]) -> Self {
        Self { random: Random(seed), runs: [IDLE; 2], sleep: Vec::new(), ready: threads.to_vec() }
    }

    fn pick(&mut self, from: fn(&mut Self) -> &mut Vec<i32>) -> Option<i32> {
        let at = from(self).len();
        let at = self.random.below(at as u64) as usize;
        let list = from(self);
        (!list.is_empty()).then(|| list.swap_remove(at))
    }

    /// A random interrupt or disk event.
    fn interrupt(&mut self, made: &mut Made, cpu: u32, ns: u64) {
        let runs = self.runs[cpu as usize];
        let disk = [("dev", 8 << 20), ("sector", self.random.below(3))];
        let what = self.random.below(4);
        if what != 1 {
            made.event(cpu, ns, runs, "irq_handler_entry", &[("irq", 9)]);
        }
        match what {
            1 => drop(made.event(cpu, ns, runs, "block_rq_issue", &disk)),
            2 => {
                let disk = [&disk[..], &[("common_flags", HARDIRQ)]].concat();
                made.event(cpu, ns, runs, "block_rq_complete", &disk);
                let Some(woken) = self.pick(|life| &mut life.sleep) else { return };
                made.wake_in_interrupt(cpu, ns, runs, woken);
                self.ready.push(woken);
            }
            3 => drop(made.event(cpu, ns, runs, "irq_handler_exit", &[("irq", 9)])),
            _ => {}
        }
    }

    /// A random event on a CPU.
    fn step(&mut self, made: &mut Made, cpu: usize, ns: u64) {
        let runs = self.runs[cpu];
        match self.random.below(6) {
            0 | 1 => {
                let state = u64::from(self.random.below(3) > 0);
                if runs != IDLE {
                    if state == SLEEPS { &mut self.sleep } else { &mut self.ready }.push(runs);
                }
                let next = self.pick(|life| &mut life.ready).unwrap_or(IDLE);
                made.switch(cpu as u32, ns, runs, if runs == IDLE { 0 } else { state }, next);
                self.runs[cpu] = next;
            }
            2 | 3 => {
                let Some(woken) = self.pick(|life| &mut life.sleep) else { return };
                match self.random.below(3) {
                    0 => made.wake_in_interrupt(cpu as u32, ns, runs, woken),
                    _ => made.wake(cpu as u32, ns, runs, woken),
                };
                self.ready.push(woken);
            }
            4 if runs == VCPU => {
                let _ = match self.random.below(3) {
                    0 => made.entry(cpu as u32, ns),
                    1 => made.exit(cpu as u32, ns, NPF),
                    _ => made.event(cpu as u32, ns, VCPU, "kvm_userspace_exit", &[("reason", 6)]),
                };
            }
            4 => drop(made.inject(cpu as u32, ns, runs)),
            _ => self.interrupt(made, cpu as u32, ns),
        }
    }
}

/// In any history, parts add up, and each thread's time is distributed completely and exactly once.
#[test]
fn parts_add_up_in_any_history() {
    let (mut states, mut of_disks) = (BTreeMap::new(), 0);
    for seed in 1..60_u64 {
        let (mut host, mut guest) = (Made::host(), Made::new("7 dd\n8 sh\n9 cat\n"));
        host.entry(0, 100).switch(0, 110, VCPU, SLEEPS, IDLE);
        let mut lives =
            [Life::new(seed * 7, &[VCPU, VHOST, SERVER, OTHER]), Life::new(seed * 13, &[DD, 8, 9])];
        let (mut dice, mut ns) = (Random(seed), 1_000);
        for _ in 0..600 {
            ns += 1 + dice.below(500);
            let cpu = dice.below(2) as usize;
            match dice.below(3) {
                0 => lives[1].step(&mut guest, cpu, ns),
                _ => lives[0].step(&mut host, cpu, ns),
            }
            if seed % 3 == 0 && dice.below(200) == 0 {
                if dice.below(2) == 0 { &mut host } else { &mut guest }.0.lose(cpu as u32);
            }
        }
        let mut recordings = two(host, guest);
        for task in ["server", "host/web vCPU 0", "host/90", "web/dd", "web/sh"] {
            let Ok(found) = critical_of_task(&mut recordings, task) else { continue };
            for part in found.parts {
                *states.entry(part.state).or_insert(0) += part.count;
                of_disks += part.reason.map_or(0, |reason| u64::from(reason == "disk 8:0"));
            }
        }
    }
    for state in [S::Running, S::ExitKernel, S::ExitUser, S::Waiting, S::Preempted, S::Blocked] {
        assert!(states.get(&state) > Some(&20), "{states:?}");
    }
    assert!(of_disks > 20, "{of_disks}");
}

/// Disk 8:0 as the kernel's `dev_t`, and a sector of it.
const DISK: [(&str, u64); 2] = [("dev", 8 << 20), ("sector", 2_048)];

/// The server waits for a disk whose request another thread issues later: first for that thread, then for the
/// disk.
#[test]
fn a_disk_is_waited_for_since_it_has_the_request() {
    let reads = |is_issued: bool, has_irq: bool| {
        let mut host = Made::host();
        host.switch(1, 500, IDLE, 0, OTHER).switch(0, 1_000, SERVER, SLEEPS, IDLE);
        if is_issued {
            host.event(1, 1_200, OTHER, "block_rq_issue", &DISK);
        }
        if has_irq {
            host.event(0, 1_700, IDLE, "irq_handler_entry", &[("irq", 9)]);
        }
        let flags = [&DISK[..], &[("common_flags", HARDIRQ)]].concat();
        host.event(0, 1_750, IDLE, "block_rq_complete", &flags);
        host.wake_in_interrupt(0, 1_800, IDLE, SERVER).switch(0, 1_900, IDLE, 0, SERVER);
        host.switch(0, 2_000, SERVER, SLEEPS, IDLE);
        critical_of_task(&mut [host.0.recording()], "server").unwrap()
    };
    let awake = ("host", "server", S::Waiting, Some("idle"), 100);
    let handler = ("host", "interrupt", S::Interrupt, Some("disk 8:0"), 100);
    let of_disk = |ns| ("host", "server", S::Blocked, Some("disk 8:0"), ns);
    let issues = ("host", "other", S::Running, None, 200);
    assert_eq!(parts(&reads(true, true)), sorted(&[handler, issues, of_disk(500), awake]));
    // The issuer is unknown: the disk accounts for all of the time.
    assert_eq!(parts(&reads(false, true)), sorted(&[handler, of_disk(700), awake]));
    // Without the interrupt's own event, nothing connects the wake-up with the disk.
    let unknown = ("host", "server", S::Blocked, Some("interrupt"), 800);
    assert_eq!(parts(&reads(true, false)), sorted(&[unknown, awake]));
}

/// Events are missing between two requests of the same sector: the second one must not get the first one's issue
/// time.
#[test]
fn requests_under_way_are_forgotten_where_events_are_lost() {
    let mut host = Made::host();
    host.switch(1, 400, IDLE, 0, OTHER).event(1, 500, OTHER, "block_rq_issue", &DISK);
    host.0.lose(1);
    host.event(1, 700, OTHER, "irq_handler_entry", &[("irq", 9)]);
    host.switch(0, 1_000, SERVER, SLEEPS, IDLE);
    host.event(0, 1_700, IDLE, "irq_handler_entry", &[("irq", 9)]);
    let flags = [&DISK[..], &[("common_flags", HARDIRQ)]].concat();
    host.event(0, 1_750, IDLE, "block_rq_complete", &flags);
    host.wake_in_interrupt(0, 1_800, IDLE, SERVER).switch(0, 1_900, IDLE, 0, SERVER);
    let found = critical_of_task(&mut [host.0.recording()], "server").unwrap();
    let blocked = ("host", "server", S::Blocked, Some("disk 8:0"), 700);
    assert!(parts(&found).contains(&blocked), "{:?}", parts(&found));
}

#[test]
fn interrupts_of_the_architecture_have_their_names() {
    let mut host = Made(Made::host().0.with_vectors());
    host.switch(0, 1_000, SERVER, SLEEPS, IDLE);
    host.event(0, 1_700, IDLE, "irq_work_entry", &[("vector", 0xf6)]);
    host.wake_in_interrupt(0, 1_800, IDLE, SERVER);
    host.event(0, 1_850, IDLE, "irq_work_exit", &[("vector", 0xf6)]);
    host.switch(0, 1_900, IDLE, 0, SERVER);
    let found = critical_of_task(&mut [host.0.recording()], "server").unwrap();
    let expected = [
        ("host", "interrupt", S::Interrupt, Some("irq_work"), 100),
        ("host", "server", S::Blocked, Some("irq_work"), 700),
        ("host", "server", S::Waiting, Some("idle"), 100),
    ];
    assert_eq!(parts(&found), sorted(&expected));
}
