//! Activity of VMMs, for exits and in their threads: synthetic histories with known results, random histories
//! compared with a second implementation, and real recordings compared with `exits`.

mod made;
mod random;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use analyses::exits::exits;
use analyses::group::By;
use analyses::vmm::{CalledBy, ExitSplit, ThreadSplit, VmDevices, Vmm, vmm};
use sources::Recording;
use timeline::Detail;

use self::made::{MAIN, Made, VCPU};

fn checked_vmm(recording: &Recording) -> Vmm {
    let processes = HashMap::from([(VCPU as u32, MAIN as u32)]);
    let found = vmm(recording, &processes, &VmDevices::default(), &[], &|_| ());
    check(recording, &found);
    found
}

/// Invariants: CPU time equals `user_ns` of the exits of the same VM, level and reason; waits are part of the
/// exits' waits; calls and locks are part of their exits.
fn check(recording: &Recording, found: &Vmm) {
    let all = exits(recording, &[By::Vm, By::Level, By::Reason, By::Code], &|_| ());
    let mut by_reason: BTreeMap<_, (u64, u64)> = BTreeMap::new();
    for row in &found.exits {
        let key = (row.vm.clone(), row.level, row.reason.clone(), row.code.clone());
        let sum = by_reason.entry(key).or_default();
        sum.0 += row.split.user_ns();
        sum.1 += row.split.waited_ns();
    }
    for row in &all.rows {
        let group = row.group.clone();
        let key = (
            group.vm.unwrap_or_default(),
            group.level.unwrap_or(0),
            group.reason.unwrap_or_default(),
            group.code.unwrap(),
        );
        let (user_ns, waited_ns) = by_reason.remove(&key).unwrap_or_default();
        let parts = row.tally.parts;
        assert_eq!(user_ns, parts.user_ns, "{key:?}");
        assert!(waited_ns <= parts.runnable_ns + parts.blocked_ns, "{key:?}");
    }
    assert!(by_reason.is_empty(), "{by_reason:?}");
    for (at, row) in found.exits.iter().enumerate() {
        let calls = found.calls.iter().filter(|call| call.by == CalledBy::Exits(at));
        let running: u64 = calls.map(|call| call.sum.running_ns).sum();
        let of_calls = row.split.calls_ns + row.split.lock_ns;
        assert!(running >= of_calls && running <= of_calls + row.split.signals_ns);
    }
    let in_locks: u64 = found.locks.iter().map(|lock| lock.exits_waited_ns).sum();
    assert_eq!(in_locks, found.exits.iter().map(|row| row.split.lock_wait_ns).sum::<u64>());
}

#[test]
fn an_exit_is_split_at_its_calls() {
    let mut made = Made::new();
    made.entry(0).exit(10, 0x7b).port(11, 0x3f8).user_exit(20);
    // It returns, runs code, writes 8 bytes to a file, runs code, and calls `KVM_RUN`.
    made.leaves(25).enters(40, 1, [7, 0, 8]).leaves(47);
    made.enters(50, 16, [9, 0xae80, 0]).loaded(54).entry(60);
    // The same, with a read of the signal mask, and a preemption in a call.
    made.exit(110, 0x7b).port(111, 0x3f8).user_exit(120).leaves(126);
    made.enters(130, 14, [0; 3]).leaves(133).enters(135, 20, [5, 0, 0]);
    made.preempted(138)
        .back(148)
        .leaves(150)
        .enters(155, 16, [9, 0xae80, 0])
        .loaded(157)
        .entry(160);
    // An exit at another port, and one that the kernel handles alone.
    made.exit(170, 0x7b).port(171, 0x80).user_exit(172).leaves(173);
    made.enters(175, 16, [9, 0xae80, 0]).loaded(176).entry(180).exit(190, 0x7b).entry(200);
    let found = checked_vmm(&made.recording());
    assert!(found.has_calls && found.is_split);
    let [first, second] = &found.exits[..] else { panic!("{:?}", found.exits) };
    assert_eq!((first.about, first.exits), (Some((Detail::Port, 0x3f8)), 2));
    assert_eq!(
        first.split,
        ExitSplit {
            return_ns: 11,
            device_ns: 15 + 3 + 4 + 2 + 5,
            calls_ns: 7 + 5,
            signals_ns: 3,
            back_ns: 4 + 2,
            run_queue_ns: 10,
            ..ExitSplit::default()
        }
    );
    assert_eq!((second.about, second.exits), (Some((Detail::Port, 0x80)), 1));
    assert_eq!(
        second.split,
        ExitSplit { return_ns: 1, device_ns: 2, back_ns: 1, ..ExitSplit::default() }
    );
    let mut calls: Vec<_> = found
        .calls
        .iter()
        .filter(|call| call.by == CalledBy::Exits(0))
        .map(|call| (call.name.as_str(), call.sum.count, call.sum.running_ns, call.sum.waited_ns))
        .collect();
    calls.sort_unstable();
    assert_eq!(
        calls,
        [("rt_sigprocmask", 1, 3, 0), ("write 8 bytes", 1, 7, 0), ("writev", 1, 5, 0)]
    );
}

#[test]
fn who_held_a_lock_is_who_released_it() {
    let mut made = Made::new();
    made.entry(0).exit(10, 0x7b).port(11, 0x70).user_exit(20).leaves(22);
    // The vCPU waits for a futex, which the main thread releases.
    made.enters(30, 202, [0x7000, 128, 0]).sleeps(33);
    made.other(70, MAIN).main_enters(75, 202, [0x7000, 129, 1]).wakes(78).main_leaves(80);
    made.back(85).leaves(88).enters(90, 16, [9, 0xae80, 0]).loaded(92).entry(95);
    // The same, but the waker is not in a futex call: there is no holder.
    made.exit(110, 0x7b).port(111, 0x70).user_exit(120).leaves(122).enters(
        130,
        202,
        [0x7000, 128, 0],
    );
    made.sleeps(131).wakes(141).back(142).leaves(143);
    made.enters(144, 16, [9, 0xae80, 0]).loaded(145).entry(150);
    let found = checked_vmm(&made.recording());
    assert_eq!(
        found.exits[0].split,
        ExitSplit {
            return_ns: 2 + 2,
            device_ns: 8 + 2 + 8 + 1,
            lock_ns: 3 + 3 + 1 + 1,
            lock_wait_ns: 45 + 10,
            run_queue_ns: 7 + 1,
            back_ns: 2 + 1,
            ..ExitSplit::default()
        }
    );
    let locks: Vec<_> = found
        .locks
        .iter()
        .map(|lock| {
            (
                lock.address,
                lock.holder.as_ref().map(|holder| holder.tid),
                lock.waits,
                lock.exits_waited_ns,
            )
        })
        .collect();
    assert_eq!(locks, [(0x7000, Some(MAIN as u32), 1, 45), (0x7000, None, 1, 10)]);
    assert_eq!(found.locks[0].holder.as_ref().unwrap().name.as_deref(), Some("main"));
}

#[test]
fn handlers_of_signals_are_a_part_of_their_own() {
    let mut made = Made::new();
    made.entry(0).exit(10, 0x60).user_exit(20).leaves(22).handler(25);
    // The handler makes a system call.
    made.enters(30, 1, [3, 0, 1]).leaves(34).enters(40, 15, [0; 3]).leaves(43);
    made.enters(50, 16, [9, 0xae80, 0]).loaded(51).entry(60);
    let found = checked_vmm(&made.recording());
    assert_eq!(
        found.exits[0].split,
        ExitSplit {
            return_ns: 2,
            device_ns: 3 + 7,
            signals_ns: 5 + 6 + 3,
            calls_ns: 4,
            back_ns: 1,
            ..ExitSplit::default()
        }
    );
}

#[test]
fn a_guest_that_is_not_entered_goes_on_with_the_same_exit() {
    let mut made = Made::new();
    made.entry(0).exit(10, 0x7b).user_exit(20).leaves(22).enters(30, 16, [9, 0xae80, 0]).loaded(33);
    // A signal is pending: KVM_RUN returns immediately.
    made.user_exit(36).leaves(38).enters(45, 16, [9, 0xae80, 0]).loaded(46).entry(60);
    let found = checked_vmm(&made.recording());
    assert_eq!(found.exits[0].exits, 1);
    let split =
        ExitSplit { return_ns: 4, device_ns: 8 + 7, back_ns: 3 + 1, ..ExitSplit::default() };
    assert_eq!(found.exits[0].split, split);
}

#[test]
fn without_system_calls_nothing_is_said_to_be_known() {
    let mut made = Made::new();
    made.entry(0).exit(10, 0x7b).user_exit(20).loaded(54).entry(60);
    let found = checked_vmm(&made.recording());
    assert!(!found.has_calls);
    assert_eq!(found.exits[0].split, ExitSplit { not_split_ns: 34, ..ExitSplit::default() });
    assert!(found.threads.is_empty());
}

#[test]
fn an_exit_in_which_events_were_lost_is_left_out() {
    let mut made = Made::new();
    made.entry(0).exit(10, 0x7b).user_exit(20).leaves(22).lose();
    made.enters(30, 16, [9, 0xae80, 0]).loaded(33).entry(40);
    let found = checked_vmm(&made.recording());
    assert!(found.exits.is_empty(), "{:?}", found.exits);
}

#[test]
fn threads_without_a_vcpu_poll_dispatch_and_submit() {
    let mut made = Made::new();
    made.entry(0);
    made.other(10, MAIN).main_enters(20, 271, [0; 3]).main_sleeps(22);
    made.main_woken(60).main_back(64).main_leaves(66);
    made.main_enters(70, 426, [0; 3]).main_leaves(75).main_enters(80, 202, [0x10, 128, 0]);
    made.main_sleeps(82).main_woken(92).main_back(93).main_leaves(95);
    made.main_enters(99, 24, [0; 3]).main_leaves(100);
    made.exit(110, 0x60).entry(120);
    let found = checked_vmm(&made.recording());
    let [main] = &found.threads[..] else { panic!("{:?}", found.threads) };
    assert_eq!((main.thread.tid, main.vm.as_str()), (MAIN as u32, "vm-100"));
    let split = ThreadSplit {
        idle_ns: 38,
        poll_ns: 2 + 2,
        dispatch_ns: 4 + 5 + 4 + 20,
        submit_ns: 5,
        lock_ns: 2 + 2,
        lock_wait_ns: 10,
        calls_ns: 1,
        run_queue_ns: 4 + 1,
        not_split_ns: 10,
        ..ThreadSplit::default()
    };
    assert_eq!(main.split, split);
    assert_eq!(main.split.wall_ns(), 120 - 10);
    assert_eq!((found.locks.len(), found.locks[0].threads_waited_ns), (1, 10));
    let submits = found.calls.iter().find(|call| call.name == "io_uring_enter").unwrap();
    assert_eq!((&submits.by, submits.sum.count), (&CalledBy::Thread(0), 1));
}

/// Very many calls in one exit are processed before its end.
#[test]
fn an_exit_with_very_many_calls_is_split_all_the_same() {
    let mut made = Made::new();
    made.entry(0).exit(10, 0x7b).user_exit(20).leaves(22);
    let mut now_ns = 30;
    for _ in 0..20_000 {
        made.enters(now_ns, 1, [7, 0, 8]).leaves(now_ns + 3);
        now_ns += 10;
    }
    made.enters(now_ns, 16, [9, 0xae80, 0]).loaded(now_ns + 1).entry(now_ns + 5);
    let found = checked_vmm(&made.recording());
    let split = found.exits[0].split;
    assert_eq!((split.calls_ns, split.device_ns), (60_000, 8 + 20_000 * 7));
    assert_eq!((split.not_split_ns, found.calls[0].sum.count), (0, 20_000));
}

/// Recordings without system calls: all time of VMMs in exits is one part, and adds up.
#[test]
fn real_recordings_add_up_to_what_exits_says() {
    let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures");
    for name in ["x86-svm/host-guest.dat", "x86-vmx/vmm.dat", "x86-vmx/smp.dat", "arm64/A.dat"] {
        let recording = sources::open(&fixtures.join(name)).unwrap();
        let found = checked_vmm(&recording);
        assert!(!found.has_calls, "{name}");
        assert!(!found.exits.is_empty(), "{name}");
        for row in &found.exits {
            assert_eq!(row.split.user_ns(), row.split.not_split_ns, "{name}");
        }
    }
}
