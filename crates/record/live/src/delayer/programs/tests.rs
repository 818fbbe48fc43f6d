//! Tests of codes, and of the programs in this kernel. They run with arguments of a host before Linux 5.16, whose exit
//! events include the reason. Threads of this test play vCPUs.

use std::time::Instant;

use aya::programs::{RawTracePointRunOptions, TestRun};
use bpf::load::{LoadError, program};
use rustix::thread::gettid;

use super::*;

#[test]
fn a_code_of_two_reasons_has_one_place() {
    let plan = DelayPlan {
        threads: Vec::new(),
        reasons: vec![vec![0x7b], vec![0x72, 0x81]],
        progress: vec![0x72],
    };
    let codes = plan.codes();
    assert_eq!(codes, [0x72, 0x7b, 0x81]);
    assert_eq!(bits(&codes, &plan.reasons[0]), 0b010);
    assert_eq!(bits(&codes, &plan.reasons[1]), 0b101);
    assert_eq!(bits(&codes, &plan.progress), 0b001);
}

/// An exit reason that no other program here uses, one that has no reason, and one that counts as progress.
const CODE: u64 = 0x4859;
const OTHER_CODE: u64 = 0x485a;
const PROGRESS_CODE: u64 = 0x485b;
const EXITS: u64 = 50;
const DELAY: Duration = Duration::from_micros(70);

/// This thread's id in the kernel.
fn here() -> u32 {
    gettid().as_raw_pid().cast_unsigned()
}

/// Attached programs for these threads. Prints the reason if that is not possible: in a container, threads have other
/// ids than the kernel's.
fn start_delayer(threads: Vec<DelayedThread>) -> Option<Delayer> {
    if !testkit::has_kernels_ids() || !cfg!(target_arch = "x86_64") {
        testkit::skip!("ids of threads are a container's, or the programs another architecture's");
        return None;
    }
    let plan =
        DelayPlan { threads, reasons: vec![vec![CODE, OTHER_CODE]], progress: vec![PROGRESS_CODE] };
    match Delayer::new(&plan) {
        Ok(delayer) => Some(delayer),
        // A verifier error is a bug in the programs, not a limitation of this machine.
        Err(why @ DelayError::Programs(LoadError::Verifier { .. })) => panic!("{why}"),
        Err(why) => {
            testkit::skip!("{why}");
            None
        }
    }
}

fn run(delayer: &mut Delayer, name: &'static str, argument: u64) {
    let mut options = RawTracePointRunOptions::new();
    options.args[0] = argument;
    program(&mut delayer.object, name).unwrap().test_run(options).unwrap();
}

/// Exits with a code, each followed by an entry; returns the time they took.
fn exits(delayer: &mut Delayer, code: u64) -> Duration {
    let start = Instant::now();
    for _ in 0..EXITS {
        run(delayer, "on_exit", code);
        run(delayer, "on_entry", 0);
    }
    start.elapsed()
}

fn of_reason(delayer: &Delayer, slice: SliceNumber) -> ReasonCounts {
    delayer.counts(slice).unwrap().by_reason[0]
}

#[test]
fn chosen_exits_of_a_chosen_thread_wait_for_as_long_as_asked() {
    let threads = vec![DelayedThread { tid: here(), is_delayed: true }];
    let Some(mut delayer) = start_delayer(threads) else { return };
    let slice = delayer.begin(Some((0, DELAY))).unwrap();
    let asked_ns = EXITS * DELAY.as_nanos() as u64;
    let took_ns = exits(&mut delayer, CODE).as_nanos() as u64;
    assert!(took_ns >= asked_ns);
    let counts = of_reason(&delayer, slice);
    assert_eq!((counts.delayed, counts.handled), (EXITS, EXITS));
    assert!(counts.delay_ns >= asked_ns, "{counts:?}");
    // The handling time excludes the delay, whatever else ran on the CPU meanwhile.
    assert!(counts.handled_ns <= took_ns - asked_ns, "{counts:?} {took_ns}");
    // A delay takes longer if the thread is preempted meanwhile, as on a busy machine.
    assert!(counts.delay_ns <= took_ns, "{counts:?} {took_ns}");

    // An exit with another code, and one that only counts as progress.
    exits(&mut delayer, 0x485c);
    exits(&mut delayer, PROGRESS_CODE);
    assert_eq!(of_reason(&delayer, slice), counts);
    assert_eq!(delayer.counts(slice).unwrap().progress, EXITS);

    let without = delayer.begin(None).unwrap();
    exits(&mut delayer, OTHER_CODE);
    let after = of_reason(&delayer, without);
    assert_eq!((after.delayed, after.handled), (0, EXITS));
    assert_eq!(of_reason(&delayer, slice), counts);
}

#[test]
fn no_delay_is_longer_than_the_most_whatever_the_word_says() {
    let threads = vec![DelayedThread { tid: here(), is_delayed: true }];
    let Some(mut delayer) = start_delayer(threads) else { return };
    // A value that `set` never writes.
    delayer.setting.set(0, delayer.places[0] << 32 | u64::from(u32::MAX), 0).unwrap();
    let start = Instant::now();
    run(&mut delayer, "on_exit", CODE);
    let took = start.elapsed();
    let counts = of_reason(&delayer, SliceNumber::default());
    assert_eq!(counts.delayed, 1);
    assert!(counts.delay_ns >= MAX_DELAY.as_nanos() as u64, "{counts:?}");
    assert!(counts.delay_ns < 2 * MAX_DELAY.as_nanos() as u64, "{counts:?}");
    // A hypervisor below may take the CPU away for a while, but not for four seconds.
    assert!(took < Duration::from_secs(1), "{took:?}");
}

#[test]
fn other_threads_are_counted_and_never_delayed() {
    let threads = vec![DelayedThread { tid: here(), is_delayed: true }];
    let Some(mut delayer) = start_delayer(threads) else { return };
    let slice = delayer.begin(Some((0, DELAY))).unwrap();
    let played = std::thread::spawn(move || {
        exits(&mut delayer, CODE);
        delayer.counts(slice).unwrap()
    });
    let counts = played.join().unwrap();
    assert!(counts.foreign >= EXITS, "{counts:?}");
    assert_eq!(counts.by_reason[0], ReasonCounts::default());
}

#[test]
fn a_known_thread_that_is_not_delayed_shows_progress_alone() {
    let threads = vec![DelayedThread { tid: here(), is_delayed: false }];
    let Some(mut delayer) = start_delayer(threads) else { return };
    let slice = delayer.begin(Some((0, DELAY))).unwrap();
    exits(&mut delayer, CODE);
    exits(&mut delayer, PROGRESS_CODE);
    let counts = delayer.counts(slice).unwrap();
    assert_eq!((counts.progress, counts.foreign), (EXITS, 0));
    assert_eq!(counts.by_reason[0], ReasonCounts::default());
}

/// An exit that begins in one slice and ends in the next counts in the first one, whatever the next one delays; a
/// longer exit counts in neither.
#[test]
fn an_exit_counts_in_the_slice_in_which_it_came() {
    let threads = vec![DelayedThread { tid: here(), is_delayed: true }];
    let Some(mut delayer) = start_delayer(threads) else { return };
    let delayed = delayer.begin(Some((0, DELAY))).unwrap();
    run(&mut delayer, "on_exit", CODE);
    let without = delayer.begin(None).unwrap();
    run(&mut delayer, "on_entry", 0);
    let (of_delayed, of_without) = (of_reason(&delayer, delayed), of_reason(&delayer, without));
    assert_eq!((of_delayed.delayed, of_delayed.handled), (1, 1));
    assert_eq!(of_without, ReasonCounts::default());

    run(&mut delayer, "on_exit", CODE);
    let next = delayer.begin(None).unwrap();
    let after = delayer.begin(None).unwrap();
    run(&mut delayer, "on_entry", 0);
    for slice in [without, next, after] {
        assert_eq!(of_reason(&delayer, slice).handled, 0);
    }
}

/// After it is attached again, the waiting program still runs, and only once per event.
#[test]
fn the_program_that_waits_goes_on_when_it_comes_last() {
    let threads = vec![DelayedThread { tid: here(), is_delayed: true }];
    let Some(mut delayer) = start_delayer(threads) else { return };
    delayer.come_last().unwrap();
    let slice = delayer.begin(Some((0, DELAY))).unwrap();
    exits(&mut delayer, CODE);
    assert_eq!(of_reason(&delayer, slice).delayed, EXITS);
    assert!(delayer.waits.is_some());
}
