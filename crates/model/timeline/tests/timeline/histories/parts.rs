//! Where the time of an exit goes.

use super::host::{Host, only_parts, parts};

const V: i32 = 100;
const OTHER: i32 = 7;
/// `TASK_INTERRUPTIBLE`.
const SLEEPS: u64 = 1;
/// The mark of a preempted thread.
const PREEMPTED: u64 = 0x100;

#[test]
fn an_exit_without_events_is_kernel_time() {
    let mut host = Host::x86();
    host.entry(0, 100, V, 0).exit(0, 1_000, V, 0x7b).entry(0, 1_700, V, 0);
    assert_eq!(only_parts(&host), parts([700, 0, 0, 0, 0]));
    assert_eq!(host.exits()[0].span.guest_ns, 900);
}

#[test]
fn user_space_ends_at_its_return_marker() {
    let mut host = Host::x86();
    host.exit(0, 1_000, V, 0x7b)
        .user_exit(0, 1_100, V)
        .user_return(0, 1_400, V)
        .entry(0, 1_450, V, 0);
    assert_eq!(only_parts(&host), parts([150, 300, 0, 0, 0]));
    assert!(!host.exits()[0].span.user_return_unseen);
}

#[test]
fn user_space_without_a_marker_lasts_to_the_entry() {
    let mut host = Host::x86();
    host.exit(0, 1_000, V, 0x7b).user_exit(0, 1_100, V).entry(0, 1_450, V, 0);
    assert_eq!(only_parts(&host), parts([100, 350, 0, 0, 0]));
    assert!(host.exits()[0].span.user_return_unseen);
}

#[test]
fn other_ioctls_do_not_end_user_space() {
    let mut host = Host::x86();
    host.exit(0, 1_000, V, 0x7b).user_exit(0, 1_100, V);
    // KVM_INTERRUPT, then KVM_RUN.
    host.event(0, 1_200, V, "sys_enter_ioctl", &[("cmd", 0x4004_ae86)]);
    host.event(0, 1_300, V, "sys_enter_ioctl", &[("cmd", 0xae80)]);
    host.entry(0, 1_450, V, 0);
    assert_eq!(only_parts(&host), parts([250, 200, 0, 0, 0]));
}

#[test]
fn a_vmm_that_returns_at_once_goes_twice() {
    let mut host = Host::x86();
    host.exit(0, 1_000, V, 0x7b).user_exit(0, 1_100, V).user_return(0, 1_200, V);
    host.user_exit(0, 1_250, V).user_return(0, 1_300, V).entry(0, 1_400, V, 0);
    assert_eq!(only_parts(&host), parts([250, 150, 0, 0, 0]));
}

#[test]
fn preempted_in_user_space_is_off_the_cpu() {
    let mut host = Host::x86();
    host.exit(0, 1_000, V, 0x7b).user_exit(0, 1_100, V);
    host.switch(0, 1_200, V, PREEMPTED, OTHER).switch(0, 1_500, OTHER, 0, V);
    host.user_return(0, 1_600, V).entry(0, 1_650, V, 0);
    assert_eq!(only_parts(&host), parts([150, 200, 300, 0, 0]));
}

#[test]
fn blocked_until_woken_then_runnable_until_it_runs() {
    let mut host = Host::x86();
    host.exit(1, 1_000, V, 0x78).switch(1, 1_100, V, SLEEPS, 0);
    host.wake(0, 1_900, OTHER, V);
    host.switch(1, 2_000, 0, 0, V).entry(1, 2_050, V, 0);
    assert_eq!(only_parts(&host), parts([150, 0, 100, 800, 0]));
}

#[test]
fn a_second_wake_up_changes_nothing() {
    let mut host = Host::x86();
    host.exit(1, 1_000, V, 0x78).switch(1, 1_100, V, SLEEPS, 0);
    host.wake(0, 1_500, OTHER, V).event(0, 1_600, OTHER, "sched_wakeup", &[("pid", V as u64)]);
    host.switch(1, 2_000, 0, 0, V).entry(1, 2_050, V, 0);
    assert_eq!(only_parts(&host), parts([150, 0, 500, 400, 0]));
}

#[test]
fn a_wake_up_of_a_running_thread_changes_nothing() {
    let mut host = Host::x86();
    host.exit(1, 1_000, V, 0x78).wake(0, 1_050, OTHER, V).switch(1, 1_100, V, SLEEPS, 0);
    host.event(0, 1_200, OTHER, "sched_wakeup", &[("pid", V as u64)]);
    host.switch(1, 2_000, 0, 0, V).entry(1, 2_050, V, 0);
    assert_eq!(only_parts(&host), parts([150, 0, 800, 100, 0]));
}

#[test]
fn polling_that_finds_work_is_all_polling() {
    let mut host = Host::x86();
    host.exit(0, 1_000, V, 0x78).wakeup(0, 1_900, V, 700, 0).entry(0, 2_000, V, 0);
    assert_eq!(only_parts(&host), parts([300, 0, 0, 0, 700]));
}

#[test]
fn only_the_time_it_ran_was_polling() {
    let mut host = Host::x86();
    host.exit(0, 1_000, V, 0x78)
        .switch(0, 1_300, V, PREEMPTED, OTHER)
        .switch(0, 1_500, OTHER, 0, V);
    host.wakeup(0, 1_900, V, 700, 0).entry(0, 2_000, V, 0);
    assert_eq!(only_parts(&host), parts([300, 0, 200, 0, 500]));
}

#[test]
fn polling_in_vain_ends_when_the_thread_sleeps() {
    let mut host = Host::x86();
    host.exit(0, 1_000, V, 0x78).switch(0, 1_400, V, SLEEPS, 0).wake(1, 5_000, OTHER, V);
    host.switch(0, 5_100, 0, 0, V).wakeup(0, 5_150, V, 4_050, 1).entry(0, 5_200, V, 0);
    assert_eq!(only_parts(&host), parts([200, 0, 100, 3_600, 300]));
}

#[test]
fn being_preempted_ends_no_polling() {
    let mut host = Host::x86();
    host.exit(0, 1_000, V, 0x78)
        .switch(0, 1_200, V, PREEMPTED, OTHER)
        .switch(0, 1_300, OTHER, 0, V);
    host.switch(0, 1_400, V, SLEEPS, 0).wake(1, 5_000, OTHER, V);
    host.switch(0, 5_100, 0, 0, V).wakeup(0, 5_150, V, 4_050, 1).entry(0, 5_200, V, 0);
    assert_eq!(only_parts(&host), parts([200, 0, 200, 3_600, 200]));
}

#[test]
fn polling_is_unknown_when_the_sleep_was_not_seen() {
    let mut host = Host::x86();
    host.exit(0, 1_000, V, 0x78).wakeup(0, 5_150, V, 4_050, 1).entry(0, 5_200, V, 0);
    assert_eq!(only_parts(&host), parts([4_200, 0, 0, 0, 0]));
    assert!(host.exits()[0].span.poll_unknown);
}

/// The duration in `kvm_vcpu_wakeup` is in nanoseconds; here the stamps are not.
#[test]
fn polling_is_not_recorded_when_stamps_are_ticks() {
    let mut host = Host::x86();
    host.clock = "x86-tsc";
    host.exit(0, 1_000, V, 0x78).wakeup(0, 1_900, V, 700, 0).entry(0, 2_000, V, 0);
    assert_eq!(only_parts(&host), parts([1_000, 0, 0, 0, 0]));
    let found = host.read();
    assert!(!found.recording.is_nanoseconds());
    assert!(!found.pass.seen.contains(timeline::Kind::VcpuWakeup));
}

#[test]
fn two_halts_in_one_exit_poll_twice() {
    let mut host = Host::x86();
    host.exit(0, 1_000, V, 0x78).wakeup(0, 1_500, V, 400, 0).wakeup(0, 1_900, V, 600, 0);
    host.entry(0, 2_000, V, 0);
    // The second claims 200 ns that were the first's already.
    assert_eq!(only_parts(&host), parts([200, 0, 0, 0, 800]));
}

#[test]
fn interrupts_before_the_exit_are_no_guest_time() {
    let mut host = Host::x86();
    host.entry(0, 1_000, V, 0).event(0, 1_600, V, "softirq_entry", &[("vec", 1)]);
    host.wake(0, 1_700, V, OTHER).event(0, 1_800, V, "softirq_exit", &[("vec", 1)]);
    host.exit(0, 2_000, V, 0x60).entry(0, 2_100, V, 0);
    let span = host.exits()[0].span;
    assert_eq!((span.guest_ns, span.before_exit_ns, span.duration_ns()), (600, 400, 100));
}

#[test]
fn what_the_thread_wakes_shows_host_work() {
    let mut host = Host::x86();
    host.entry(0, 1_000, V, 0).wake(0, 1_700, V, OTHER).exit(0, 2_000, V, 0x60);
    host.entry(0, 2_100, V, 0);
    let span = host.exits()[0].span;
    assert_eq!((span.guest_ns, span.before_exit_ns), (700, 300));
}
