//! Which stacks take more time on the second side than on the first: all of both in one tree, each frame judged with all
//! that it calls.

use std::collections::HashMap;

use super::compare::{Diff, DiffRow, Options, diff};
use super::matching::Matching;
use super::question::{Estimator, KeyValue, MeasuredGroup, Metric, Question, Run, Unit};
use super::series::{Series, Sums};
use super::stacks::StackFrame;

/// Frames that are judged, those that take longest. Each costs some 2 KB a run, and others some significance.
const MAX_JUDGED: usize = 1000;
/// Samples of both sides together that a frame needs to be judged.
const MIN_SAMPLES: u64 = 20;
/// Share of all that it needs: a narrower one is hardly seen, and costs others their significance.
const MIN_SHARE: f64 = 0.001;

const COUNT: usize = 0;
const TIME: usize = 1;

/// Time that samples stand for, and time that events say: of that nothing was drawn.
const METRICS: [Metric; 2] = [Metric { samples: Some(COUNT), ..KNOWN }, KNOWN];
const KNOWN: Metric = Metric {
    name: "ns_per_s",
    short: "time",
    unit: Unit::TimePerSecond,
    estimator: Estimator::PerSecond(TIME),
    samples: None,
};

/// What frames are compared as. Nothing is measured for it: [`changes`] makes its groups.
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

/// A frame on both sides.
#[derive(Clone, Debug)]
pub struct ChangedStack {
    /// Its caller, by its place among all; callers come before what they call.
    pub caller: Option<usize>,
    /// What it is. VMs by their place in [`StackChanges::vms`].
    pub frame: StackFrame,
    /// Time per second in it and in what it calls, on the first side and on the second: of several runs the mean.
    pub ns_per_s: [f64; 2],
    /// The same without what it calls.
    pub own_ns_per_s: [f64; 2],
    /// Samples of both sides.
    pub samples: u64,
    /// Whether the sides differ, where there is enough to say.
    pub judged: Option<DiffRow>,
}

/// All stacks of both sides.
#[derive(Clone, Debug)]
pub struct StackChanges {
    /// The frames; callers come before what they call.
    pub stacks: Vec<ChangedStack>,
    /// Names of the VMs, as in the first run that has each.
    pub vms: Vec<String>,
}

impl StackChanges {
    /// Time per second in all stacks, on either side.
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
    /// For each run, where its frames are in `stacks`.
    places: Vec<Vec<usize>>,
}

impl Union {
    /// Adds a run's stacks to `side`; `vms` are the places of its VMs among all.
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

    /// By frame, whether it is judged, and by which of the metrics.
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

    /// A run of which each frame that is judged is a group.
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
            // The other metric isn't this one's.
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
