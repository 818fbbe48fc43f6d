//! Stacks whose time differs between the sides: all stacks in one tree, and a comparison of each frame with its
//! callees.

use std::collections::HashMap;

use super::compare::{Diff, DiffRow, Options, diff};
use super::matching::Matching;
use super::question::{Estimator, KeyValue, MeasuredGroup, Metric, Question, Run, Unit};
use super::series::{Series, Sums};
use super::stacks::StackFrame;

/// Max compared frames: those with the longest times. Each costs some 2 KB per run, and makes others less
/// significant.
const MAX_JUDGED: usize = 1000;
/// Min samples of a compared frame over both sides.
const MIN_SAMPLES: u64 = 20;
/// Min share of a compared frame: narrower frames are hardly visible, and make others less significant.
const MIN_SHARE: f64 = 0.001;

const COUNT: usize = 0;
const TIME: usize = 1;

/// A metric for times from samples, and one for times from events, which have no sampling error.
const METRICS: [Metric; 2] = [Metric { samples: Some(COUNT), ..KNOWN }, KNOWN];
const KNOWN: Metric = Metric {
    name: "ns_per_s",
    short: "time",
    unit: Unit::TimePerSecond,
    estimator: Estimator::PerSecond(TIME),
    samples: None,
};

/// Question of the frames' comparison. It measures nothing, because [`changes`] builds its groups.
static QUESTION: Question = Question {
    name: "stacks",
    columns: &["frame"],
    metrics: &METRICS,
    weight: TIME,
    count: COUNT,
    aligned: true,
    sampled: true,
    measure: |_, _| Run::empty(),
    settle: |_| (),
};

/// A frame with its times on both sides.
#[derive(Clone, Debug)]
pub struct ChangedStack {
    /// Index of its caller; callers come before callees.
    pub caller: Option<usize>,
    /// The frame, with VMs as indexes into [`StackChanges::vms`].
    pub frame: StackFrame,
    /// Time per second including callees, on the first and the second side; the mean of several runs.
    pub ns_per_s: [f64; 2],
    /// Time per second without callees.
    pub own_ns_per_s: [f64; 2],
    /// Number of samples on both sides.
    pub samples: u64,
    /// The comparison, if the frame has enough time and samples.
    pub judged: Option<DiffRow>,
}

/// Stacks of both sides in one tree.
#[derive(Clone, Debug)]
pub struct StackChanges {
    /// Frames; callers come before callees.
    pub stacks: Vec<ChangedStack>,
    /// Names of the VMs, from the first run of each.
    pub vms: Vec<String>,
}

impl StackChanges {
    /// Time per second of all stacks on each side.
    #[must_use]
    pub fn ns_per_s(&self) -> [f64; 2] {
        let roots = self.stacks.iter().filter(|stack| stack.caller.is_none());
        roots.fold([0.0; 2], |[a, b], stack| [a + stack.ns_per_s[0], b + stack.ns_per_s[1]])
    }
}

/// Compares the stacks of the runs of `b` with those of `a`.
#[must_use]
pub fn stack_changes(a: &[Run], b: &[Run], options: Options) -> StackChanges {
    let runs: Vec<&Run> = a.iter().chain(b).collect();
    let matching = Matching::from_runs(runs.iter().copied());
    let mut union = Union::default();
    for (at, run) in runs.iter().enumerate() {
        let places = matching.places.get(at).map_or(&[][..], Vec::as_slice);
        union.add(run, places, usize::from(at >= a.len()), [a.len(), b.len()]);
    }
    let judged = union.heaviest();
    let (of_a, of_b): (Vec<_>, Vec<_>) = runs
        .iter()
        .zip(&union.places)
        .map(|(run, places)| union.run(run, places, &judged))
        .enumerate()
        .partition(|(at, _)| *at < a.len());
    let without_number = |runs: Vec<(usize, Run)>| runs.into_iter().map(|(_, run)| run).collect();
    let (of_a, of_b): (Vec<Run>, Vec<Run>) = (without_number(of_a), without_number(of_b));
    union.judge(diff(&QUESTION, &of_a, &of_b, options));
    let vms = matching.vms.into_iter().map(|vm| vm.name).collect();
    StackChanges { stacks: union.stacks, vms }
}

/// The stacks of all runs in one tree.
#[derive(Debug, Default)]
struct Union {
    stacks: Vec<ChangedStack>,
    known: HashMap<(Option<usize>, StackFrame), usize>,
    /// By run: indexes of its frames in `stacks`.
    places: Vec<Vec<usize>>,
}

impl Union {
    /// Adds a run's stacks to `side`; `vms` maps its VMs to the common list.
    fn add(&mut self, run: &Run, vms: &[usize], side: usize, runs: [usize; 2]) {
        let mut places: Vec<usize> = Vec::with_capacity(run.stacks.nodes.len());
        for (caller, frame) in &run.stacks.nodes {
            let caller = caller.and_then(|at| places.get(at).copied());
            let frame = match frame {
                StackFrame::Vm(vm) => StackFrame::Vm(vms.get(*vm).copied().unwrap_or(*vm)),
                other => other.clone(),
            };
            places.push(self.place(caller, frame));
        }
        let ns = run.span_ns.1.saturating_sub(run.span_ns.0);
        let of_side = runs.get(side).copied().unwrap_or(1);
        let per_second = 1e9 / (ns as f64 * of_side as f64).max(1.0);
        for time in &run.stacks.times {
            let Some(&place) = places.get(time.node) else { continue };
            let rate = time.time_ns as f64 * per_second;
            if let Some(own_rate) =
                self.stacks.get_mut(place).and_then(|stack| stack.own_ns_per_s.get_mut(side))
            {
                *own_rate += rate;
            }
            let mut at = Some(place);
            while let Some(stack) = at.and_then(|at| self.stacks.get_mut(at)) {
                stack.samples += u64::from(!time.is_known);
                if let Some(sum) = stack.ns_per_s.get_mut(side) {
                    *sum += rate;
                }
                at = stack.caller;
            }
        }
        self.places.push(places);
    }

    fn place(&mut self, caller: Option<usize>, frame: StackFrame) -> usize {
        let next = self.stacks.len();
        let place = *self.known.entry((caller, frame.clone())).or_insert(next);
        if place == next {
            let (ns_per_s, own_ns_per_s) = ([0.0; 2], [0.0; 2]);
            let stack =
                ChangedStack { caller, frame, ns_per_s, own_ns_per_s, samples: 0, judged: None };
            self.stacks.push(stack);
        }
        place
    }

    /// By frame: the metric for its comparison; `None` if it is not compared.
    fn heaviest(&self) -> Vec<Option<usize>> {
        let time = |stack: &ChangedStack| stack.ns_per_s[0] + stack.ns_per_s[1];
        let roots = self.stacks.iter().filter(|stack| stack.caller.is_none());
        let min = roots.map(time).sum::<f64>() * MIN_SHARE;
        let metric = |stack: &ChangedStack| match stack.samples {
            _ if time(stack) < min => None,
            0 => Some(1),
            samples => (samples >= MIN_SAMPLES).then_some(0),
        };
        let mut metrics: Vec<Option<usize>> = self.stacks.iter().map(metric).collect();
        let mut by_time: Vec<(usize, f64)> = self.stacks.iter().map(time).enumerate().collect();
        by_time.retain(|(at, _)| metrics.get(*at).is_some_and(Option::is_some));
        by_time.sort_by(|(_, ns_per_s), (_, other)| other.total_cmp(ns_per_s));
        for (at, _) in by_time.into_iter().skip(MAX_JUDGED) {
            if let Some(metric) = metrics.get_mut(at) {
                *metric = None;
            }
        }
        metrics
    }

    /// Converts a run: each compared frame becomes a group.
    fn run(&self, run: &Run, places: &[usize], judged: &[Option<usize>]) -> Run {
        let mut series: HashMap<usize, Series> = HashMap::new();
        for time in &run.stacks.times {
            let mut sums = Sums::default();
            (sums[COUNT], sums[TIME]) = (u64::from(!time.is_known), time.time_ns);
            let mut at = places.get(time.node).copied();
            while let Some(place) = at {
                if judged.get(place).is_some_and(Option::is_some) {
                    series.entry(place).or_default().add(time.at_ns, &sums, None);
                }
                at = self.stacks.get(place).and_then(|stack| stack.caller);
            }
        }
        let group = |(place, series)| MeasuredGroup {
            key: vec![KeyValue::Number(place as u64)],
            series,
            whole_index: None,
            // The group does not have the other metric.
            unrecorded: if judged.get(place) == Some(&Some(0)) { 2 } else { 1 },
        };
        Run {
            span_ns: run.span_ns,
            groups: series.into_iter().map(group).collect(),
            nanoseconds: run.nanoseconds,
            ..Run::empty()
        }
    }

    fn judge(&mut self, diff: Diff) {
        for row in diff.rows {
            let [KeyValue::Number(place)] = &*row.key else { continue };
            let at = usize::try_from(*place).ok();
            if let Some(stack) = at.and_then(|at| self.stacks.get_mut(at)) {
                stack.judged = Some(row);
            }
        }
    }
}
