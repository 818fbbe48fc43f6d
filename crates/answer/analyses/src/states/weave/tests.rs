//! Overlays guest changes on synthetic cycles.

use proptest::prelude::*;
use timeline::VcpuActivity;
use timeline::cycles::{CycleEnd, Interval, VcpuCycle};

use super::*;
use crate::states::span::OccupantSpan;

#[derive(Default)]
struct KeptSpans {
    vcpu: Vec<StateSpan>,
    tasks: Vec<(u32, u64, u64)>,
}

impl StateSink for KeptSpans {
    fn vcpu(&mut self, _: VcpuRef, span: &StateSpan) {
        self.vcpu.push(*span);
    }

    fn task(&mut self, _: GuestCpu, task: u32, span: &StateSpan) {
        self.tasks.push((task, span.from_ns, span.to_ns));
    }

    fn cpu(&mut self, _: GuestCpu, _: &OccupantSpan) {}
}

const BOUND_NS: u64 = 10;
const VCPU: VcpuRef = VcpuRef { recording: 0, index: 0 };

fn weave() -> GuestOverlay {
    GuestOverlay {
        guest: Some((GuestCpu { recording: 1, cpu: 0 }, BOUND_NS)),
        ..GuestOverlay::default()
    }
}

fn interval(from_ns: u64, to_ns: u64, activity: VcpuActivity) -> Interval {
    let in_exit =
        !matches!(activity, VcpuActivity::Guest | VcpuActivity::Unknown | VcpuActivity::BeforeExit);
    Interval { from_ns, to_ns, activity, in_vmm: false, in_exit, cpu: 0 }
}

fn cycle(intervals: &[Interval], level: u8) -> VcpuCycle<'_> {
    let end = CycleEnd::Entry;
    VcpuCycle { vcpu: 0, thread: 9, level, intervals, exit: None, halted: false, end }
}

fn runs(task: u32) -> Context {
    Context { task: Some(task), state: VcpuState::GuestUser }
}

/// Two cycles, each 100 ns in the guest and 100 ns away.
fn weave_two_cycles(weave: &mut GuestOverlay, level: u8) -> KeptSpans {
    let mut spans = KeptSpans::default();
    for from in [1_000, 1_200] {
        let intervals = [
            interval(from, from + 100, VcpuActivity::Guest),
            interval(from + 100, from + 200, VcpuActivity::Kernel),
        ];
        weave.cycle(&cycle(&intervals, level), Isa::Svm, VCPU, &mut spans);
    }
    spans
}

fn of_guest(spans: &KeptSpans) -> Vec<(Option<u32>, u64, u64)> {
    let guest = spans.vcpu.iter().filter(|span| span.state.is_guest());
    guest.map(|span| (span.task, span.from_ns, span.to_ns)).collect()
}

#[test]
fn what_lies_just_outside_is_moved_to_the_nearest_time_in_the_guest() {
    let mut weave = weave();
    for (at, task) in [(990, 1), (1_050, 2), (1_108, 3), (1_195, 4), (1_230, 5)] {
        weave.change(at, runs(task));
    }
    let spans = weave_two_cycles(&mut weave, 1);
    let expected = [
        (Some(1), 1_000, 1_050),
        (Some(2), 1_050, 1_100),
        (Some(4), 1_200, 1_230),
        (Some(5), 1_230, 1_300),
    ];
    assert_eq!(of_guest(&spans), expected);
    // Thread 3 began before the exit, so the exit belongs to it.
    assert!(spans.tasks.contains(&(3, 1_100, 1_200)), "{:?}", spans.tasks);
    let placed = GuestFit { changes: 4, moved: 2, most_moved_ns: 8, outside: 0 };
    assert_eq!(weave.placed, placed, "what came before the vCPU is no change to be placed");
}

#[test]
fn what_lies_further_outside_shows_nothing() {
    let mut weave = weave();
    for (at, task) in [(1_050, 1), (1_130, 2), (1_250, 3)] {
        weave.change(at, runs(task));
    }
    let spans = weave_two_cycles(&mut weave, 1);
    let expected = [
        (None, 1_000, 1_050),
        (Some(1), 1_050, 1_100),
        (None, 1_200, 1_250),
        (Some(3), 1_250, 1_300),
    ];
    assert_eq!(of_guest(&spans), expected);
    assert_eq!(weave.placed.outside, 1);
    assert!(spans.tasks.iter().all(|(task, _, _)| *task != 2));
}

#[test]
fn what_runs_inside_the_guest_is_not_known_by_it() {
    let mut weave = weave();
    weave.change(1_010, runs(1));
    let spans = weave_two_cycles(&mut weave, 2);
    let inside = spans.vcpu.iter().filter(|span| span.state.is_guest());
    assert!(inside.clone().all(|span| span.state == VcpuState::Guest && span.level == 2));
    assert!(spans.tasks.contains(&(1, 1_010, 1_100)), "{:?}", spans.tasks);
}

#[test]
fn nothing_is_known_beyond_the_end_of_the_recording() {
    let mut weave = GuestOverlay { until_ns: Some(1_060), ..weave() };
    weave.change(1_050, runs(1));
    let spans = weave_two_cycles(&mut weave, 1);
    let expected = [(None, 1_000, 1_050), (Some(1), 1_050, 1_060), (None, 1_060, 1_100)];
    assert_eq!(of_guest(&spans)[..3], expected);
    assert_eq!(spans.tasks, [(1, 1_050, 1_060)]);
    assert_eq!(weave.placed.changes, 1);
}

#[test]
fn waiting_changes_are_bounded() {
    let mut weave = weave();
    let full = (0..MAX_WAITING as u64).map(|at| weave.change(at, runs(1))).filter(|full| *full);
    assert_eq!(full.count(), 1);
    weave.give_up();
    assert!(weave.waiting.is_empty());
    assert_eq!(weave.now, Some(runs(1)), "before the vCPU is seen, the last one counts");
}

proptest! {
    /// The host alone determines the vCPU's times, whatever the guest's events contain.
    #[test]
    fn a_guest_changes_no_sum(
        lengths in prop::collection::vec((0_u8..3, 1_u64..50), 1..40),
        mut changes in prop::collection::vec((0_u64..2_500, 0_u32..4), 0..60),
    ) {
        changes.sort_by_key(|(at, _)| *at);
        let mut weave = weave();
        let (mut spans, mut now_ns, mut given) = (KeptSpans::default(), 500, 0);
        let mut expected = std::collections::BTreeMap::new();
        for (kind, length) in lengths {
            let activity = [VcpuActivity::Guest, VcpuActivity::Unknown, VcpuActivity::Kernel][usize::from(kind)];
            let intervals = [
                interval(now_ns, now_ns + length, activity),
                interval(now_ns + length, now_ns + length + 7, VcpuActivity::Kernel),
            ];
            now_ns += length + 7;
            while let Some(&(at, task)) = changes.get(given).filter(|(at, _)| *at < now_ns) {
                weave.change(at, runs(task));
                given += 1;
            }
            weave.cycle(&cycle(&intervals, 1), Isa::Svm, VCPU, &mut spans);
            for interval in intervals {
                *expected.entry(format!("{:?}", interval.activity)).or_insert(0) += interval.to_ns - interval.from_ns;
            }
        }
        let mut found = std::collections::BTreeMap::new();
        for span in &spans.vcpu {
            let activity = match span.state {
                state if state.is_guest() => "Guest",
                VcpuState::Unknown => "Unknown",
                _ => "Kernel",
            };
            *found.entry(activity.to_owned()).or_insert(0) += span.duration_ns();
        }
        prop_assert_eq!(found, expected);
        let contiguous = spans.vcpu.windows(2).all(|pair| pair[0].to_ns == pair[1].from_ns);
        prop_assert!(contiguous);
        let tasks: u64 = spans.tasks.iter().map(|(_, from, to)| to - from).sum();
        let with_task: u64 = spans.vcpu.iter().filter(|span| span.task.is_some()).map(StateSpan::duration_ns).sum();
        prop_assert_eq!(tasks, with_task);
    }
}
