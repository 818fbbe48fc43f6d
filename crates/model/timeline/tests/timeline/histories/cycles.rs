//! What vCPU threads did when: no time is missing or given twice, and all adds up to the exits.

use std::collections::BTreeMap;
use std::path::Path;

use ftrace::eventfmt::EventFormat;
use proptest::prelude::*;
use sources::Recording;
use timeline::cycles::{CycleEnd, CycleSink, Interval, VcpuCycle, VcpuCycles, each_cycle};
use timeline::reading::each_trace_event;
use timeline::trace_events::{EventRequest, Gap, TraceEvent, TraceEventSink, WantsTraceEvents};
use timeline::{Parts, VcpuActivity};

use super::host::{Host, Seen};
use super::random::{Case, config, lives, losses};

const V: i32 = 100;
const OTHER: i32 = 7;

/// A cycle, kept.
#[derive(Clone, Debug, PartialEq)]
struct KeptCycle {
    vcpu: usize,
    thread: u32,
    intervals: Vec<Interval>,
    exit_ns: Option<u64>,
    end: CycleEnd,
}

#[derive(Default)]
struct Cycles(Vec<KeptCycle>);

impl CycleSink for Cycles {
    fn cycle(&mut self, cycle: &VcpuCycle<'_>) {
        let exit_ns = cycle.exit.map(|exit| exit.start_ns);
        let (vcpu, thread, end) = (cycle.vcpu, cycle.thread, cycle.end);
        let intervals = cycle.intervals.to_vec();
        self.0.push(KeptCycle { vcpu, thread, intervals, exit_ns, end });
    }
}

#[derive(Default)]
struct Pass {
    cycles: VcpuCycles,
    emitted: Cycles,
}

/// Times of the recordings made here are nanoseconds.
impl WantsTraceEvents for Pass {
    fn wanted(&self, _: usize, format: &EventFormat) -> Option<EventRequest> {
        VcpuCycles::wanted(format, true)
    }
}

impl TraceEventSink for Pass {
    fn event(&mut self, event: &TraceEvent) {
        self.cycles.event(event, &mut self.emitted);
    }

    fn gap(&mut self, gap: &Gap) {
        self.cycles.gap(gap);
    }
}

fn cycles(host: &Host) -> Vec<KeptCycle> {
    let recording: Recording = sources::open_bytes(Path::new("made.dat"), host.file()).unwrap();
    let mut pass = Pass::default();
    assert!(recording.is_nanoseconds());
    each_trace_event(std::slice::from_ref(&recording), &mut pass, &|_| ());
    let Pass { cycles, mut emitted } = pass;
    cycles.finish(&mut emitted);
    emitted.0
}

/// Events are read for cycles alone.
impl WantsTraceEvents for Cycles {
    fn wanted(&self, _: usize, _: &EventFormat) -> Option<EventRequest> {
        None
    }
}

impl TraceEventSink for Cycles {
    fn event(&mut self, _: &TraceEvent) {}

    fn gap(&mut self, _: &Gap) {}
}

/// [`cycles`], read thread by thread.
fn cycles_by_thread(host: &Host) -> Vec<KeptCycle> {
    let recording: Recording = sources::open_bytes(Path::new("made.dat"), host.file()).unwrap();
    let mut emitted = Cycles::default();
    each_cycle(&recording, &mut emitted, &|_| ());
    emitted.0
}

/// Each thread's, in order; vCPUs are not numbered in the same order.
fn of_threads(cycles: Vec<KeptCycle>) -> BTreeMap<u32, Vec<KeptCycle>> {
    let mut threads: BTreeMap<u32, Vec<KeptCycle>> = BTreeMap::new();
    for cycle in cycles {
        threads.entry(cycle.thread).or_default().push(KeptCycle { vcpu: 0, ..cycle });
    }
    threads
}

fn spent(cycle: &KeptCycle, counts: impl Fn(&Interval) -> bool) -> u64 {
    let counted = cycle.intervals.iter().filter(|interval| counts(interval));
    counted.map(|interval| interval.to_ns - interval.from_ns).sum()
}

fn parts(cycle: &KeptCycle) -> Parts {
    let all = |activity: &[VcpuActivity]| {
        spent(cycle, |interval| interval.in_exit && activity.contains(&interval.activity))
    };
    Parts {
        kernel_ns: all(&[VcpuActivity::Kernel]),
        user_ns: all(&[VcpuActivity::User]),
        runnable_ns: all(&[VcpuActivity::Preempted, VcpuActivity::Waiting]),
        blocked_ns: all(&[VcpuActivity::Blocked]),
        halt_poll_ns: all(&[VcpuActivity::HaltPoll]),
    }
}

/// Guest, and before `kvm_exit`.
fn window(cycle: &KeptCycle) -> (u64, u64) {
    let guest_ns =
        spent(cycle, |interval| !interval.in_exit && interval.activity == VcpuActivity::Guest);
    let known = |interval: &Interval| {
        interval.activity != VcpuActivity::Guest && interval.activity != VcpuActivity::Unknown
    };
    (guest_ns, spent(cycle, |interval| !interval.in_exit && known(interval)))
}

/// Stretches of a vCPU follow one another.
fn check_partition(cycles: &[KeptCycle]) -> Result<(), TestCaseError> {
    let mut ends: BTreeMap<usize, u64> = BTreeMap::new();
    for cycle in cycles {
        for interval in &cycle.intervals {
            prop_assert!(interval.from_ns < interval.to_ns, "{:?}", cycle);
            let before = ends.insert(cycle.vcpu, interval.to_ns);
            prop_assert!(before.is_none_or(|end| end == interval.from_ns), "{:?}", cycle);
        }
    }
    Ok(())
}

/// Every exit that has a time has a cycle with the same parts, and the other way round.
fn check_exits(cycles: &[KeptCycle], exits: &[Seen]) -> Result<(), TestCaseError> {
    let key = |thread: u32, start_ns: u64| (thread, start_ns);
    let ended = cycles.iter().filter(|cycle| cycle.end == CycleEnd::Entry);
    let by_cycle: BTreeMap<_, _> = ended
        .filter_map(|cycle| {
            Some((key(cycle.thread, cycle.exit_ns?), (parts(cycle), window(cycle))))
        })
        .collect();
    let paired = exits.iter().filter(|seen| seen.is_paired());
    let by_exit: BTreeMap<_, _> = paired
        .map(|seen| {
            let guest = (seen.span.guest_ns, seen.span.before_exit_ns);
            (key(seen.thread, seen.span.start_ns), (seen.span.parts, guest))
        })
        .collect();
    prop_assert_eq!(by_cycle, by_exit);
    Ok(())
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn cycles_have_no_gaps_and_add_up_to_the_exits(lives in lives(), losses in losses()) {
        for losses in [&[][..], &losses] {
            let mut case = Case::new(&lives, true);
            case.lose(losses);
            let cycles = cycles(&case.host());
            check_partition(&cycles)?;
            check_exits(&cycles, &case.host().exits())?;
        }
    }

    #[test]
    fn thread_by_thread_cycles_are_those_in_the_order_of_all_cpus(
        lives in lives(),
        losses in losses(),
        scheduler in any::<bool>(),
    ) {
        let mut case = Case::new(&lives, scheduler);
        case.lose(&losses);
        let host = case.host();
        prop_assert_eq!(of_threads(cycles_by_thread(&host)), of_threads(cycles(&host)));
    }

    #[test]
    fn cycles_add_up_without_the_scheduler(lives in lives(), losses in losses()) {
        let mut case = Case::new(&lives, false);
        case.lose(&losses);
        let cycles = cycles(&case.host());
        check_partition(&cycles)?;
        check_exits(&cycles, &case.host().exits())?;
    }
}

/// What was done, in order, with durations.
fn durations(cycles: &[KeptCycle]) -> Vec<(VcpuActivity, u64)> {
    let intervals = cycles.iter().flat_map(|cycle| &cycle.intervals);
    intervals.map(|interval| (interval.activity, interval.to_ns - interval.from_ns)).collect()
}

#[test]
fn being_woken_and_being_preempted_are_told_apart() {
    let mut host = Host::x86();
    host.entry(0, 1_000, V, 0)
        .exit(0, 1_100, V, 0x78)
        .switch(0, 1_150, V, 1, OTHER)
        .wake(1, 1_400, OTHER, V)
        .switch(0, 1_450, OTHER, 0x100, V)
        .switch(0, 1_500, V, 0x100, OTHER)
        .switch(0, 1_560, OTHER, 0x100, V)
        .entry(0, 1_570, V, 0);
    let expected = [
        (VcpuActivity::Guest, 100),
        (VcpuActivity::Kernel, 50),
        (VcpuActivity::Blocked, 250),
        (VcpuActivity::Waiting, 50),
        (VcpuActivity::Kernel, 50),
        (VcpuActivity::Preempted, 60),
        (VcpuActivity::Kernel, 10),
    ];
    assert_eq!(durations(&cycles(&host)), expected);
}

#[test]
fn polling_stands_where_it_was() {
    let mut host = Host::x86();
    host.entry(0, 1_000, V, 0)
        .exit(0, 1_100, V, 0x78)
        .switch(0, 1_300, V, 1, OTHER)
        .wake(1, 1_400, OTHER, V)
        .switch(0, 1_450, OTHER, 0x100, V)
        .wakeup(0, 1_460, V, 310, 1)
        .entry(0, 1_500, V, 0);
    let expected = [
        (VcpuActivity::Guest, 100),
        (VcpuActivity::Kernel, 50),
        (VcpuActivity::HaltPoll, 150),
        (VcpuActivity::Blocked, 100),
        (VcpuActivity::Waiting, 50),
        (VcpuActivity::Kernel, 10),
        (VcpuActivity::Kernel, 40),
    ];
    assert_eq!(durations(&cycles(&host)), expected);
}

#[test]
fn what_a_loss_hides_is_unknown() {
    let mut host = Host::x86();
    host.shape.events_per_page = 1;
    host.entry(0, 1_000, V, 0)
        .exit(0, 1_100, V, 0x78)
        .lose(0)
        .entry(0, 1_500, V, 0)
        .exit(0, 1_600, V, 0x78)
        .entry(0, 1_700, V, 0);
    let expected = [
        (VcpuActivity::Guest, 100),
        (VcpuActivity::Unknown, 400),
        (VcpuActivity::Guest, 100),
        (VcpuActivity::Kernel, 100),
    ];
    assert_eq!(durations(&cycles(&host)), expected);
}

#[test]
fn a_thread_that_runs_several_vcpus_is_each_of_them_alternately() {
    let mut host = Host::x86();
    host.entry(0, 1_000, V, 0)
        .exit(0, 1_100, V, 0x7b)
        .entry(0, 1_200, V, 1)
        .exit(0, 1_300, V, 0x7b)
        .entry(0, 1_400, V, 0)
        .exit(0, 1_500, V, 0x7b)
        .entry(0, 1_600, V, 0);
    let cycles = cycles(&host);
    let cycles_of = |vcpu: usize| -> Vec<KeptCycle> {
        cycles.iter().filter(|cycle| cycle.vcpu == vcpu).cloned().collect()
    };
    let (guest, unknown, kernel) =
        (VcpuActivity::Guest, VcpuActivity::Unknown, VcpuActivity::Kernel);
    assert_eq!(
        durations(&cycles_of(0)),
        [(guest, 100), (unknown, 300), (guest, 100), (kernel, 100)]
    );
    assert_eq!(durations(&cycles_of(1)), [(guest, 100)]);
}

/// Asks what a thread did so far whenever another thread is seen.
#[derive(Default)]
struct Impatient {
    pass: Pass,
    answers: Vec<bool>,
}

impl WantsTraceEvents for Impatient {
    fn wanted(&self, recording: usize, format: &EventFormat) -> Option<EventRequest> {
        self.pass.wanted(recording, format)
    }
}

impl TraceEventSink for Impatient {
    fn event(&mut self, event: &TraceEvent) {
        self.pass.event(event);
        if event.thread == OTHER as u32 {
            let Pass { cycles, emitted } = &mut self.pass;
            self.answers.push(cycles.emit_guest(V as u32, event.stamp_ns, emitted));
        }
    }

    fn gap(&mut self, gap: &Gap) {
        self.pass.gap(gap);
    }
}

#[test]
fn callers_that_cannot_wait_for_an_exit_get_the_time_so_far() {
    let mut host = Host::x86();
    host.entry(0, 1_000, V, 0)
        .wake(1, 1_300, OTHER, 55)
        .wake(1, 1_500, OTHER, 55)
        .exit(0, 1_600, V, 0x78)
        .wake(1, 1_650, OTHER, 55)
        .entry(0, 1_700, V, 0);
    let recording: Recording = sources::open_bytes(Path::new("made.dat"), host.file()).unwrap();
    let mut pass = Impatient::default();
    assert!(recording.is_nanoseconds());
    each_trace_event(std::slice::from_ref(&recording), &mut pass, &|_| ());
    assert_eq!(pass.answers, [true, true, false], "while it is in its guest");
    let ends: Vec<CycleEnd> = pass.pass.emitted.0.iter().map(|cycle| cycle.end).collect();
    assert_eq!(ends, [CycleEnd::Partial, CycleEnd::Partial, CycleEnd::Entry]);
    let guest = VcpuActivity::Guest;
    let expected = [(guest, 300), (guest, 200), (guest, 100), (VcpuActivity::Kernel, 100)];
    assert_eq!(durations(&pass.pass.emitted.0), expected);
}
