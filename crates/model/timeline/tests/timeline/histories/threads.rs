//! Threads that move between CPUs, end, and pass their ids on.

use timeline::{Outcome, group_vms};

use super::host::{Host, only_parts, parts, windows};

const V: i32 = 100;
const OTHER: i32 = 7;

#[test]
fn an_exit_on_one_cpu_ends_on_another() {
    let mut host = Host::x86();
    host.exit(0, 1_000, V, 0x7b).entry(1, 1_700, V, 0);
    assert_eq!(only_parts(&host), parts([700, 0, 0, 0, 0]));
}

#[test]
fn a_move_between_cpus_is_off_the_cpu() {
    let mut host = Host::x86();
    host.exit(1, 1_000, V, 0x78).switch(1, 1_200, V, 1, 0);
    host.wake(3, 1_500, OTHER, V).switch(0, 1_600, 0, 0, V).entry(0, 1_700, V, 0);
    assert_eq!(only_parts(&host), parts([300, 0, 100, 300, 0]));
}

#[test]
fn a_move_back_and_forth_keeps_every_pair() {
    let mut host = Host::x86();
    host.exit(1, 1_000, V, 1).exit(1, 3_000, V, 3);
    host.entry(0, 1_700, V, 0).exit(0, 2_000, V, 2);
    host.entry(2, 2_500, V, 0).entry(2, 3_300, V, 0);
    let exits = host.exits();
    assert_eq!(windows(&exits), [(1_000, Some(1_700)), (2_000, Some(2_500)), (3_000, Some(3_300))]);
    assert_eq!(exits.iter().map(|exit| exit.span.code).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn the_recording_starts_in_an_exit() {
    let mut host = Host::x86();
    host.user_exit(0, 500, V).user_return(0, 600, V).entry(0, 700, V, 0);
    host.exit(0, 1_000, V, 1).entry(0, 1_100, V, 0);
    let exits = host.exits();
    assert_eq!(windows(&exits), [(1_000, Some(1_100))]);
    assert_eq!(exits[0].span.guest_ns, 300);
}

#[test]
fn the_recording_ends_in_an_exit() {
    let mut host = Host::x86();
    host.exit(0, 1_000, V, 1).entry(0, 1_100, V, 0).exit(0, 1_200, V, 2).user_exit(0, 1_300, V);
    let exits = host.exits();
    assert_eq!(windows(&exits), [(1_000, Some(1_100)), (1_200, None)]);
    assert_eq!(exits[1].span.outcome, Outcome::Unpaired);
}

#[test]
fn two_exits_in_a_row_are_one_pair() {
    let mut host = Host::x86();
    host.exit(0, 1_000, V, 1).exit(0, 1_200, V, 2).entry(0, 1_300, V, 0);
    assert_eq!(windows(&host.exits()), [(1_000, None), (1_200, Some(1_300))]);
}

#[test]
fn the_second_of_two_entries_in_a_row_restarts_the_guest() {
    let mut host = Host::x86();
    host.entry(0, 1_000, V, 0).entry(0, 1_200, V, 0).exit(0, 1_500, V, 1).entry(0, 1_600, V, 0);
    let exits = host.exits();
    assert_eq!(windows(&exits), [(1_500, Some(1_600))]);
    assert_eq!(exits[0].span.guest_ns, 300);
}

#[test]
fn vms_with_equal_vcpu_ids_stay_apart() {
    let mut host = Host::x86();
    for (cpu, first) in [(0, 100), (1, 200)] {
        for vcpu in 0..2 {
            let (thread, ns) = (first + vcpu, 1_000 + 100 * vcpu as u64 + u64::from(cpu));
            host.exit(cpu, ns, thread, 1).entry(cpu, ns + 50, thread, vcpu as u64);
        }
    }
    let found = host.read();
    assert!(found.exits.iter().all(|exit| exit.span.duration_ns() == 50));
    let vms = group_vms(&found.recording, &found.pass.vcpus);
    let threads: Vec<Vec<(u32, u32)>> = vms
        .iter()
        .map(|vm| vm.vcpus.iter().map(|vcpu| (vcpu.vcpu, vcpu.thread)).collect())
        .collect();
    assert_eq!(threads, [[(0, 100), (1, 101)], [(0, 200), (1, 201)]]);
}

#[test]
fn a_thread_that_ends_ends_its_vcpu() {
    let mut host = Host::x86();
    host.entry(0, 900, V, 0).exit(0, 1_000, V, 1);
    host.event(0, 1_100, V, "sched_process_exit", &[("pid", V as u64)]);
    host.switch(0, 1_150, V, 0x10, OTHER);
    // The same thread id, of another VM.
    host.entry(0, 5_000, V, 0).exit(0, 5_100, V, 2).entry(0, 5_300, V, 0);
    let exits = host.exits();
    assert_eq!(windows(&exits), [(1_000, None), (5_100, Some(5_300))]);
    assert_ne!(exits[0].vcpu, exits[1].vcpu);
    assert_eq!(exits[1].span.guest_ns, 100);
}

#[test]
fn a_thread_id_with_another_vcpu_id_is_another_vcpu() {
    let mut host = Host::x86();
    host.entry(0, 900, V, 0).exit(0, 1_000, V, 1);
    host.entry(0, 5_000, V, 1).exit(0, 5_100, V, 2).entry(0, 5_300, V, 1);
    let found = host.read();
    assert_eq!(windows(&found.exits), [(1_000, None), (5_100, Some(5_300))]);
    let ids: Vec<_> = found.pass.vcpus.iter().map(|vcpu| vcpu.vcpu_id).collect();
    assert_eq!(ids, [Some(0), Some(1)]);
}

#[test]
fn a_wake_up_before_the_first_exit_on_its_stream_counts() {
    let mut host = Host::x86();
    // The CPU that wakes is read before the one on which the vCPU shows itself.
    host.wake(0, 1_500, OTHER, V);
    host.exit(1, 1_000, V, 0x78).switch(1, 1_100, V, 1, 0).switch(1, 1_600, 0, 0, V);
    host.entry(1, 1_650, V, 0);
    assert_eq!(only_parts(&host), parts([150, 0, 100, 400, 0]));
}

/// A VMM may run several vCPUs in one thread: each keeps its place however often they take turns.
#[test]
fn one_thread_that_runs_two_vcpus_alternately_is_two_vcpus() {
    let mut host = Host::x86();
    for round in 0..10u64 {
        let start = 1_000 * (round + 1);
        host.entry(0, start, V, round % 2);
        host.exit(0, start + 100, V, 1).entry(0, start + 150, V, round % 2);
        host.exit(0, start + 200, V, 2);
    }
    let found = host.read();
    assert_eq!(
        found.pass.vcpus.iter().map(|vcpu| vcpu.vcpu_id).collect::<Vec<_>>(),
        [Some(0), Some(1)]
    );
    let exits = host.exits();
    // An exit before another vCPU's round has no entry of its own.
    assert_eq!(exits.iter().filter(|exit| exit.is_paired()).count(), 10);
    assert!(exits.iter().filter(|exit| exit.is_paired()).all(|exit| exit.span.code == 1));
}
