//! Compares exits of nested guests: cost of each reason, and its ancillary exits.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use timeline::reasons::ReasonNames;
use timeline::{ExitSink, ExitSpan, Outcome, each_exit, group_vms};

use super::exits::{Span, metric};
use super::question::{
    Estimator, KeyValue, Lost, MeasuredGroup, Metric, Question, Run, RunInput, RunVm, Unit,
};
use super::series::{Series, Sums};
use super::stacks::Stacks;
use crate::nested_steps::{Follower, RawReason, Step};
use crate::vms::VmsByVcpu;

const COUNT: usize = 0;
const REFLECTED: usize = 1;
const ANCILLARY: usize = 2;
/// Exits of level 2 with their ancillary exits.
const ALL: usize = 3;
const TIME: usize = 4;
const PAIRED: usize = 5;
const OWN_TIME: usize = 6;
const ROUND_TRIPS: usize = 7;
const ROUND_TRIP_TIME: usize = 8;

/// The question of `hyperscope diff nested`.
pub(super) const QUESTION: Question = Question {
    name: "nested",
    columns: &["vm", "level", "isa", "reason", "ancillary"],
    metrics: &METRICS,
    weight: TIME,
    count: COUNT,
    aligned: false,
    sampled: false,
    measure,
    settle: |_| (),
};

const METRICS: [Metric; 9] = [
    metric("count_per_s", "count", Unit::CountPerSecond, Estimator::PerSecond(COUNT)),
    metric("reflected_share", "reflected", Unit::Share, Estimator::Per(REFLECTED, COUNT)),
    metric("per_exit", "ancillary", Unit::Times, Estimator::Per(ANCILLARY, REFLECTED)),
    metric("factor", "factor", Unit::Times, Estimator::Per(ALL, COUNT)),
    metric("mean_ns", "mean", Unit::Time, Estimator::Per(OWN_TIME, PAIRED)),
    metric(
        "round_trip_mean_ns",
        "round_trip",
        Unit::Time,
        Estimator::Per(ROUND_TRIP_TIME, ROUND_TRIPS),
    ),
    metric("round_trip_p50_ns", "p50", Unit::Time, Estimator::Quantile(500)),
    metric("round_trip_p99_ns", "p99", Unit::Time, Estimator::Quantile(990)),
    metric("time_ns_per_s", "time", Unit::TimePerSecond, Estimator::PerSecond(TIME)),
];

/// Index of the metric of ancillary reasons.
const PER_EXIT: usize = 2;

/// A level-2 reason on one vCPU.
#[derive(Debug, Default)]
struct Reason {
    series: Series,
    ancillary: BTreeMap<RawReason, Series>,
}

#[derive(Debug, Default)]
struct OneVcpu {
    follower: Follower,
    reasons: BTreeMap<RawReason, Reason>,
}

#[derive(Debug, Default)]
struct NestedSeries {
    vcpus: FxHashMap<usize, OneVcpu>,
    span: Span,
}

impl ExitSink for NestedSeries {
    fn exit(&mut self, vcpu: usize, span: &ExitSpan) {
        self.span.include(span);
        let vcpu = self.vcpus.entry(vcpu).or_default();
        let reasons = &mut vcpu.reasons;
        vcpu.follower.exit(span, |step| take(reasons, span, step));
    }
}

/// Adds an exit to its reason, at the time of the level-2 exit.
fn take(reasons: &mut BTreeMap<RawReason, Reason>, span: &ExitSpan, step: Step) {
    let raw_reason = (span.isa, span.code);
    let paired_ns = (span.outcome == Outcome::Paired).then(|| span.duration_ns());
    let time_ns = paired_ns.unwrap_or(0);
    let mut sums = Sums::default();
    match step {
        Step::Level1 | Step::Unfinished { .. } => {}
        Step::Level2 { reflected } => {
            sums[COUNT] = 1;
            sums[ALL] = 1;
            sums[REFLECTED] = u64::from(reflected);
            sums[PAIRED] = u64::from(paired_ns.is_some());
            sums[OWN_TIME] = time_ns;
            sums[TIME] = time_ns;
            reasons.entry(raw_reason).or_default().series.add(span.start_ns, &sums, None);
        }
        Step::Ancillary { level2_reason, since_ns } => {
            let reason = reasons.entry(level2_reason).or_default();
            sums[ANCILLARY] = 1;
            reason.ancillary.entry(raw_reason).or_default().add(since_ns, &sums, None);
            sums[ALL] = 1;
            sums[TIME] = time_ns;
            reason.series.add(since_ns, &sums, None);
        }
        Step::Back { level2_reason, since_ns, .. } => {
            let took_ns = span.end_ns.saturating_sub(since_ns);
            sums[ROUND_TRIPS] = 1;
            sums[ROUND_TRIP_TIME] = took_ns;
            reasons.entry(level2_reason).or_default().series.add(since_ns, &sums, Some(took_ns));
        }
    }
}

fn measure(input: RunInput<'_>, progress: &(dyn Fn(u64) + Sync)) -> Run {
    let Some(recording) = input.view.recordings.first() else { return Run::empty() };
    let pass = each_exit(recording, false, NestedSeries::default(), progress);
    let vms = group_vms(recording, &pass.vcpus);
    let homes = VmsByVcpu::new(&vms);
    let mut names = ReasonNames::new(recording);
    let mut groups: BTreeMap<Vec<KeyValue>, Series> = BTreeMap::new();
    let mut vcpus: Vec<(&usize, &OneVcpu)> = pass.sink.vcpus.iter().collect();
    vcpus.sort_unstable_by_key(|(index, _)| **index);
    for (index, vcpu) in vcpus {
        let Some(vm) = homes.place(*index) else { continue };
        for (raw, reason) in &vcpu.reasons {
            let key = |ancillary: KeyValue, names: &mut ReasonNames| {
                vec![
                    KeyValue::Vm(vm),
                    KeyValue::Number(2),
                    KeyValue::Text(names.isa(raw.0).name().to_owned()),
                    KeyValue::Text(names.name(raw.0, raw.1)),
                    ancillary,
                ]
            };
            groups.entry(key(KeyValue::None, &mut names)).or_default().merge(&reason.series);
            for (below, series) in &reason.ancillary {
                let name = KeyValue::Text(names.name(below.0, below.1));
                groups.entry(key(name, &mut names)).or_default().merge(series);
            }
        }
    }
    Run {
        vms: vms.iter().map(RunVm::new).collect(),
        span_ns: pass.sink.span.ends(),
        groups: measured(&groups),
        wholes: Vec::new(),
        nanoseconds: recording.is_nanoseconds(),
        lost: Lost::from_losses([&pass.losses]),
        calls: Vec::new(),
        stacks: Stacks::default(),
    }
}

/// All groups; those of ancillary reasons include the number of reflected exits, to which they relate.
fn measured(groups: &BTreeMap<Vec<KeyValue>, Series>) -> Vec<MeasuredGroup> {
    groups
        .iter()
        .map(|(key, series)| {
            let mut series = series.clone();
            let mut unrecorded = 0;
            if let Some((KeyValue::Text(_), parent)) = key.split_last() {
                let parent: Vec<KeyValue> =
                    parent.iter().cloned().chain([KeyValue::None]).collect();
                if let Some(parent) = groups.get(&parent) {
                    series.merge_sum(parent, REFLECTED, REFLECTED);
                }
                unrecorded = !(1 << PER_EXIT);
            }
            MeasuredGroup { key: key.clone(), series, whole_index: None, unrecorded }
        })
        .collect()
}
