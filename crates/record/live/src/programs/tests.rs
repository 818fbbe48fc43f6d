//! Tests of the programs in this kernel. They run with arguments of a host before Linux 5.16, whose exit events include
//! the reason. This thread plays the vCPU, and is scheduled like any thread.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Barrier, mpsc};

use parking_lot::Mutex;
use std::time::{Duration, Instant};

use aya::programs::{RawTracePointRunOptions, TestRun};
use bpf::load::{LoadError, program};
use rustix::thread::gettid;
use sys::{ClockId, clock_ns};

use super::*;
use crate::snapshot::RowKey;
use timeline::VcpuActivity;

/// An exit reason that no other program here uses.
const CODE: u64 = 0x4859;

/// The thread that plays a vCPU.
struct Played {
    programs: Programs,
    thread: u32,
    /// The kernel's own count of this thread's switches: at the begin, and when its sums were last read.
    switches: [u64; 2],
    /// How many switches are waits in what was read.
    waits: u64,
}

impl Played {
    /// Attached programs. Prints the reason if that is not possible: in a container, threads have other ids than the
    /// kernel's.
    fn begin() -> Option<Self> {
        Self::with_rows(64)
    }

    fn with_rows(rows: u32) -> Option<Self> {
        if !testkit::has_kernels_ids() || !cfg!(target_arch = "x86_64") {
            testkit::skip!(
                "ids of threads are a container's, or the programs another architecture's"
            );
            return None;
        }
        let programs = Programs::load(Room::new(rows)).and_then(|mut programs| {
            programs.begin_interval(now_ns(), 0)?;
            programs.attach()?;
            Ok(programs)
        });
        match programs {
            Ok(programs) => {
                let thread = gettid().as_raw_pid().cast_unsigned();
                Some(Self { programs, thread, switches: [switches(); 2], waits: 0 })
            }
            // A verifier error is a bug in the programs, not a limitation of this machine.
            Err(why @ LiveError::Programs(LoadError::Verifier { .. })) => panic!("{why}"),
            Err(why) => {
                testkit::skip!("{why}");
                None
            }
        }
    }

    /// Makes the calling thread the played one.
    fn is_here(&mut self) {
        self.thread = gettid().as_raw_pid().cast_unsigned();
        self.switches = [switches(); 2];
    }

    fn run(&mut self, name: &'static str, args: &[u64]) {
        let mut options = RawTracePointRunOptions::new();
        options.args[..args.len()].copy_from_slice(args);
        program(&mut self.programs.object, name).unwrap().test_run(options).unwrap();
    }

    fn exit(&mut self) {
        self.run("on_exit", &[CODE]);
    }

    fn entry(&mut self) {
        self.run("on_entry", &[0]);
    }

    /// The rows and the state of this thread until now.
    fn take(&mut self, bank: usize) -> (Snapshot, u64) {
        if gettid().as_raw_pid().cast_unsigned() == self.thread {
            self.switches[1] = switches();
        }
        let end_ns = self.programs.end_interval(1 - bank).unwrap();
        let snapshot = self.programs.take(bank).unwrap();
        let waits = snapshot.waits.iter().find(|(thread, _)| *thread == self.thread);
        self.waits += waits.map_or(0, |(_, sums)| sums.count);
        (snapshot, end_ns)
    }

    fn own_sums(&self, snapshot: &Snapshot, level: u8) -> Sums {
        let key = RowKey { thread: self.thread, level, isa: host_isa() as u8, code: CODE };
        let found = snapshot.rows.iter().find(|(row_key, _)| *row_key == key);
        found.map(|(_, sums)| sums.clone()).unwrap_or_default()
    }

    fn state<'s>(&self, snapshot: &'s Snapshot) -> &'s VcpuState {
        snapshot.vcpus.iter().find(|state| state.thread == self.thread).unwrap()
    }
}

/// The kernel's own count of the calling thread's switches.
fn switches() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let counts = status.lines().filter_map(|line| line.split_once("voluntary_ctxt_switches:"));
    counts.map(|(_, count)| count.trim().parse::<u64>().unwrap()).sum()
}

fn now_ns() -> u64 {
    clock_ns(ClockId::Monotonic)
}

/// Max attempts of tests that need every switch traced.
const ATTEMPTS: u32 = 10;

/// Plays a vCPU until the kernel has traced each of its switches: Linux 6.18 misses one in some hundreds, in tracefs as
/// well, and the times around it can't be right.
fn traced_whole<T>(
    mut play: impl FnMut(&mut Played) -> (Snapshot, T),
) -> Option<(Played, Snapshot, T)> {
    for _ in 0..ATTEMPTS {
        let mut played = Played::begin()?;
        let (snapshot, result) = play(&mut played);
        let [before, after] = played.switches;
        if snapshot.sched_events_unseen == 0 && played.waits >= after - before {
            return Some((played, snapshot, result));
        }
    }
    panic!("a switch was left out in each of {ATTEMPTS} attempts");
}

/// Works for this time.
fn work(ms: u64) -> u64 {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(ms) {}
    ms * 1_000_000
}

#[test]
fn an_exit_is_split_into_the_parts_that_its_events_show() {
    let split = traced_whole(|played| {
        played.entry();
        let guest_ns = work(2);
        played.exit();
        let kernel_ns = work(3);
        played.run("on_user", &[]);
        let user_ns = work(4);
        played.run("on_user_return", &[0]);
        let not_back_ns = work(1);
        played.run("on_user_return", &[1]);
        std::thread::sleep(Duration::from_millis(20));
        played.entry();
        (played.take(0).0, [guest_ns, kernel_ns, user_ns + not_back_ns])
    });
    let Some((played, snapshot, [guest_ns, kernel_ns, user_ns])) = split else { return };
    let sums = played.own_sums(&snapshot, 1);
    let parts = sums.parts;
    assert_eq!((sums.count, sums.paired, sums.handled), (1, 1, [0, 1, 0]));
    assert_eq!(parts.total_ns(), sums.time_ns);
    // Another thread may have run on the CPU meanwhile: it is in the parts.
    let least = |part: u64, did: u64| part + parts.runnable_ns >= did;
    assert!(least(parts.kernel_ns, kernel_ns), "{parts:?}");
    assert!(least(parts.user_ns, user_ns), "{parts:?}");
    assert!(parts.blocked_ns >= 19_000_000, "{parts:?}");
    assert!(sums.guest_ns + sums.before_exit_ns >= guest_ns, "{sums:?}");
    assert_eq!((sums.times.count(), sums.user_return_unseen), (1, 0));
    // At least 30 ms: the bucket's bound.
    assert!(sums.times.quantile_ns(1.0).unwrap() >= 30_000_000 * 84 / 100);
}

#[test]
fn polling_is_cut_out_of_the_time_in_the_kernel() {
    let polled = traced_whole(|played| {
        for waited in [0, 1] {
            played.exit();
            work(3);
            if waited == 1 {
                std::thread::sleep(Duration::from_millis(5));
            }
            // Until now, or until it fell asleep, beginning 1 ms before.
            played.run("on_wakeup", &[if waited == 1 { 6_000_000 } else { 1_000_000 }, waited]);
            played.entry();
        }
        (played.take(0).0, ())
    });
    let Some((played, snapshot, ())) = polled else { return };
    let sums = played.own_sums(&snapshot, 1);
    assert_eq!((sums.count, sums.paired, sums.poll_unknown), (2, 2, 0));
    assert_eq!(sums.parts.total_ns(), sums.time_ns);
    let polled_ns = sums.parts.halt_poll_ns;
    // Exactly 1 ms, unless it was preempted; and the rest of 6 ms, of which it slept for about 5.
    assert!(polled_ns + sums.parts.blocked_ns <= 7_000_000, "{sums:?}");
    assert!(polled_ns + sums.parts.runnable_ns >= 900_000, "{sums:?}");
    assert!(sums.parts.blocked_ns >= 4_000_000, "{sums:?}");
}

#[test]
fn exits_without_an_entry_are_counted_and_levels_told_apart() {
    let Some(mut played) = Played::begin() else { return };
    played.exit();
    played.exit();
    // Level 1 enters level 2, which exits; the exit is reflected, and level 1 continues.
    played.run("on_nested_enter", &[]);
    played.entry();
    let entered_ns = now_ns();
    while now_ns() < entered_ns + 2_000_000 {}
    played.exit();
    played.run("on_nested_exit", &[]);
    played.run("on_nested_inject", &[]);
    played.entry();
    let entered_ns = now_ns();
    while now_ns() < entered_ns + 3_000_000 {}
    played.exit();
    // An enter that fails.
    played.run("on_nested_enter", &[]);
    played.run("on_nested_enter_failed", &[]);
    played.entry();
    played.exit();
    played.entry();
    let (snapshot, end_ns) = played.take(0);
    let (level_one, two) = (played.own_sums(&snapshot, 1), played.own_sums(&snapshot, 2));
    let did = played.state(&snapshot).done_by(end_ns);
    assert_eq!(did.nested_ns(), two.guest_ns, "{did:?}");
    assert!(
        did.time_ns(VcpuActivity::Guest) >= level_one.guest_ns + two.guest_ns,
        "{did:?} {level_one:?}"
    );
    assert_eq!((level_one.count, level_one.paired, level_one.handled), (4, 3, [3, 0, 0]));
    assert_eq!((two.count, two.paired, two.handled), (1, 1, [0, 0, 1]));
}

#[test]
fn states_add_up_to_every_interval() {
    let all_did = traced_whole(|played| {
        played.entry();
        let (mut snapshot, mut begin_ns) = played.take(0);
        let mut before = played.state(&snapshot).done_by(begin_ns);
        let mut all_did = Vec::new();
        for round in 1..6 {
            played.exit();
            work(1);
            std::thread::sleep(Duration::from_millis(2));
            if round % 2 == 0 {
                played.entry();
            }
            let end_ns;
            (snapshot, end_ns) = played.take(round % 2);
            let done = played.state(&snapshot).done_by(end_ns);
            let did = done.since(&before);
            assert_eq!(did.total_ns(), end_ns - begin_ns, "{did:?}");
            all_did.push(did);
            (before, begin_ns) = (done, end_ns);
        }
        (snapshot, all_did)
    });
    for did in all_did.into_iter().flat_map(|(_, _, all_did)| all_did) {
        assert!(did.time_ns(VcpuActivity::Blocked) >= 1_900_000, "{did:?}");
    }
}

#[test]
fn an_end_that_was_set_after_it_had_come_leaves_states_whole() {
    let Some(mut played) = Played::begin() else { return };
    let (end, is_to_end) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let (send_played, got_played) = mpsc::channel();
        let vcpu = scope.spawn(move || {
            played.is_here();
            played.entry();
            work(3);
            played.exit();
            let late_ns = (now_ns() - 2_000_000) & !1;
            played.programs.begin_interval(late_ns, 1).unwrap();
            played.entry();
            send_played.send(played).unwrap();
            // Nothing more happens on this thread: the sums at its end stay.
            let _ = is_to_end.recv();
        });
        let mut played = got_played.recv().unwrap();
        let (snapshot, end_ns) = played.take(1);
        let state = played.state(&snapshot);
        assert!(state.is_whole());
        assert_eq!(state.done_by(end_ns).total_ns(), end_ns - state.born_ns);
        drop(end);
        vcpu.join().unwrap();
    });
}

#[test]
fn what_has_no_room_is_in_one_row_and_nothing_is_counted_twice() {
    let Some(mut played) = Played::with_rows(4) else { return };
    for code in 0..50 {
        played.run("on_exit", &[code]);
        played.entry();
    }
    let (snapshot, _) = played.take(0);
    let rows: u64 = snapshot.rows.iter().map(|(_, sums)| sums.count).sum();
    assert_eq!((rows + snapshot.other.count, snapshot.other.paired), (50, snapshot.other.count));
    assert!(snapshot.other.count >= 40, "{}", snapshot.other.count);
    played.exit();
    played.entry();
    let (snapshot, _) = played.take(1);
    assert_eq!((played.own_sums(&snapshot, 1).count, snapshot.other.count), (1, 0));
    let (snapshot, _) = played.take(0);
    assert_eq!((snapshot.rows.len(), snapshot.other.count), (0, 0));
}

#[test]
fn a_thread_that_ends_is_reported_once_and_leaves_its_room() {
    let Some(mut played) = Played::begin() else { return };
    let mut thread = 0;
    std::thread::scope(|scope| {
        let vcpu = scope.spawn(|| {
            played.exit();
            gettid().as_raw_pid().cast_unsigned()
        });
        thread = vcpu.join().unwrap();
    });
    let gone_flag = |snapshot: &Snapshot| {
        snapshot.vcpus.iter().find(|state| state.thread == thread).map(|state| state.gone)
    };
    let deadline = Instant::now() + Duration::from_secs(10);
    let mut bank = 0;
    // Joining a thread returns slightly before the kernel traces its end.
    loop {
        let (snapshot, _) = played.take(bank);
        bank = 1 - bank;
        match gone_flag(&snapshot) {
            Some(true) => break,
            is_gone => assert!(is_gone == Some(false) && Instant::now() < deadline),
        }
    }
    assert_eq!(gone_flag(&played.take(bank).0), None);
}

/// Pins the calling thread to the machine's first CPU.
fn stay_on_one_cpu() {
    let mut cpus = rustix::thread::CpuSet::new();
    cpus.set(0);
    rustix::thread::sched_setaffinity(None, &cpus).unwrap();
}

/// Competes for the CPU until it is stopped; returns its thread id.
fn take_cpu(is_named: &Barrier, stop: &AtomicBool) -> u32 {
    stay_on_one_cpu();
    rustix::thread::set_name(c"takes-the-cpu").unwrap();
    is_named.wait();
    while !stop.load(Relaxed) {}
    gettid().as_raw_pid().cast_unsigned()
}

/// Shares a CPU with another thread for a while, so that each waits for the other; returns the other's id and its run
/// time.
fn wait_for_another(played: &mut Played) -> (Snapshot, (u64, u32)) {
    let (stop, is_named) = (AtomicBool::new(false), Barrier::new(2));
    std::thread::scope(|scope| {
        let taker = scope.spawn(|| take_cpu(&is_named, &stop));
        let waiter = scope.spawn(|| {
            stay_on_one_cpu();
            is_named.wait();
            played.is_here();
            played.entry();
            let start = Instant::now();
            while start.elapsed() < Duration::from_millis(200) {}
            played.exit();
            let outcome = played.take(0);
            stop.store(true, Relaxed);
            outcome
        });
        let (snapshot, end_ns) = waiter.join().unwrap();
        (snapshot, (end_ns, taker.join().unwrap()))
    })
}

#[test]
fn a_wait_is_of_those_that_had_the_cpu_meanwhile() {
    let Some((played, snapshot, (end_ns, taker))) = traced_whole(wait_for_another) else { return };
    let waits = snapshot.waits.iter().find(|(thread, _)| *thread == played.thread);
    let ended_ns = waits.map_or(0, |(_, sums)| sums.time_ns);
    let did = played.state(&snapshot).done_by(end_ns);
    let waited_ns = did.time_ns(VcpuActivity::Preempted) + did.time_ns(VcpuActivity::Waiting);
    let takers: Vec<_> =
        snapshot.takers.iter().filter(|entry| entry.waiter == played.thread).collect();
    let known_ns: u64 = takers.iter().map(|entry| entry.time_ns).sum();
    let by_taker = takers.iter().find(|entry| entry.thread == taker).unwrap();
    assert!(ended_ns > 20_000_000, "{ended_ns}");
    // The last wait may continue at the interval's end.
    assert!(
        known_ns <= waited_ns && known_ns >= ended_ns / 10 * 9,
        "{ended_ns} {known_ns} {did:?}"
    );
    // Other threads may have run as well.
    assert!(by_taker.time_ns > 5_000_000, "{takers:?}");
    assert_eq!((by_taker.name.as_str(), by_taker.process), ("takes-the-cpu", std::process::id()));
    assert!(takers.iter().all(|entry| entry.thread != played.thread), "{takers:?}");
}

#[test]
fn each_switch_is_a_wait_or_is_known_not_to_be_traced() {
    let Some(mut played) = Played::begin() else { return };
    let others: Vec<Played> = (0..3).map_while(|_| Played::begin()).collect();
    let (counted, is_counted) = mpsc::channel();
    let (end, is_to_end) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let vcpu = scope.spawn(move || {
            played.is_here();
            played.entry();
            for _ in 0..2000 {
                std::thread::sleep(Duration::from_micros(50));
            }
            played.switches[1] = switches();
            counted.send(played).unwrap();
            // No switch back from here on.
            let _ = is_to_end.recv();
        });
        let mut played = is_counted.recv().unwrap();
        std::thread::sleep(Duration::from_millis(10));
        let unseen = played.take(0).0.sched_events_unseen;
        let [before, after] = played.switches;
        let (made, known) = (after - before, played.waits + unseen);
        // A sleep may end before it begins. A sleep whose switches were both missed is unknown; some happen before the
        // first count, or after the last.
        assert!(made > 1800 && (made - made / 100..made + 10).contains(&known), "{made} {known}");
        assert!(unseen * 20 < made, "{unseen} of {made}");
        drop(end);
        vcpu.join().unwrap();
    });
    drop(others);
}

/// vCPUs and reasons of a large host: 200 VMs of 4.
const MANY: (usize, u64) = (800, 40);

#[test]
fn the_vcpus_of_a_large_host_are_counted_and_taken_out() {
    let (threads, reasons) = MANY;
    let Some(mut played) = Played::with_rows(1 << 16) else { return };
    let room = Mutex::new(&mut played);
    let (all_began, all_counted) = (Barrier::new(threads), Barrier::new(threads));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            // Threads that all exist at once, like vCPUs.
            std::thread::Builder::new()
                .stack_size(64 << 10)
                .spawn_scoped(scope, || {
                    all_began.wait();
                    for code in 0..reasons {
                        let mut played = room.lock();
                        played.run("on_exit", &[code]);
                        played.entry();
                    }
                    all_counted.wait();
                })
                .unwrap();
        }
    });
    let start = Instant::now();
    let (snapshot, _) = played.take(0);
    let took = start.elapsed();
    assert_eq!(snapshot.rows.len() as u64, threads as u64 * reasons);
    assert_eq!(
        snapshot.rows.iter().map(|(_, sums)| sums.paired).sum::<u64>(),
        threads as u64 * reasons
    );
    assert_eq!((snapshot.vcpus.len(), snapshot.other.count), (threads, 0));
    eprintln!("{} rows of {threads} vCPUs taken out in {took:?}", snapshot.rows.len());
}
