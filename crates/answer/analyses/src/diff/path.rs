//! Compares paths of requests by VM and first step, in total and by step.

use rustc_hash::FxHashMap;
use timeline::Vm;

use super::exits::metric;
use super::question::{
    Estimator, KeyValue, Lost, MeasuredGroup, Metric, Question, Run, RunInput, RunVm, Unit,
};
use super::series::{Series, Sums};
use super::stacks::Stacks;
use crate::path::{Actor, Label, Request, RequestPass, RequestSink, each_request};

const COUNT: usize = 0;
const TIME: usize = 1;

/// The question of `hyperscope diff path`.
pub(super) const QUESTION: Question = Question {
    name: "path",
    columns: &["vm", "start", "step", "on"],
    metrics: &METRICS,
    weight: TIME,
    count: COUNT,
    aligned: false,
    sampled: false,
    measure,
    settle: |_| (),
};

const METRICS: [Metric; 6] = [
    metric("count_per_s", "count", Unit::CountPerSecond, Estimator::PerSecond(COUNT)),
    metric("mean_ns", "mean", Unit::Time, Estimator::Per(TIME, COUNT)),
    metric("p50_ns", "p50", Unit::Time, Estimator::Quantile(500)),
    metric("p90_ns", "p90", Unit::Time, Estimator::Quantile(900)),
    metric("p99_ns", "p99", Unit::Time, Estimator::Quantile(990)),
    metric("time_ns_per_s", "time", Unit::TimePerSecond, Estimator::PerSecond(TIME)),
];

/// Max groups: a guest can access any address.
const MAX_GROUPS: usize = 1024;

/// Requests with the same first step; all of a request, or one of its steps.
type Key = (Option<u16>, Label, Option<(Label, Actor)>);

#[derive(Debug, Default)]
struct RequestSeries {
    groups: FxHashMap<Key, Series>,
    span_ns: Option<(u64, u64)>,
}

impl RequestSink for RequestSeries {
    fn request(&mut self, request: &Request<'_>) {
        let [first, .., last] = request.steps else { return };
        let (from_ns, to_ns) = self.span_ns.unwrap_or((first.stamp_ns, last.stamp_ns));
        self.span_ns = Some((from_ns.min(first.stamp_ns), to_ns.max(last.stamp_ns)));
        let start = (request.vm, first.label);
        self.add((start.0, start.1, None), first.stamp_ns, last.stamp_ns);
        for two in request.steps.windows(2) {
            if let [from, to] = two {
                let step = Some((to.label, to.on));
                self.add((start.0, start.1, step), from.stamp_ns, to.stamp_ns);
            }
        }
    }
}

impl RequestSeries {
    fn add(&mut self, key: Key, from_ns: u64, to_ns: u64) {
        if self.groups.len() >= MAX_GROUPS && !self.groups.contains_key(&key) {
            return;
        }
        let duration_ns = to_ns.saturating_sub(from_ns);
        let mut sums = Sums::default();
        (sums[COUNT], sums[TIME]) = (1, duration_ns);
        self.groups.entry(key).or_default().add(from_ns, &sums, Some(duration_ns));
    }
}

fn measure(input: RunInput<'_>, progress: &(dyn Fn(u64) + Sync)) -> Run {
    let Some(recording) = input.view.recordings.first() else { return Run::empty() };
    let (found, vms) = each_request(recording, RequestSeries::default(), progress);
    let lost = Lost::from_losses(&found.losses);
    Run {
        vms: vms.iter().map(RunVm::new).collect(),
        span_ns: found.sink.span_ns.unwrap_or((0, 0)),
        groups: groups(&found, &vms),
        wholes: Vec::new(),
        nanoseconds: found.nanoseconds,
        lost,
        calls: Vec::new(),
        stacks: Stacks::default(),
    }
}

fn groups(found: &RequestPass<RequestSeries>, vms: &[Vm]) -> Vec<MeasuredGroup> {
    let text = |label| KeyValue::Text(found.labels.text(label).to_owned());
    let group = |((vm, start, step), series): (&Key, &Series)| {
        let vm = vm.map(usize::from).filter(|vm| *vm < vms.len());
        let (step, on) = match step {
            Some((label, on)) => (text(*label), KeyValue::Text(on.name().to_owned())),
            None => (KeyValue::None, KeyValue::None),
        };
        let key = vec![vm.map_or(KeyValue::None, KeyValue::Vm), text(*start), step, on];
        MeasuredGroup { key, series: series.clone(), whole_index: None, unrecorded: 0 }
    };
    let mut groups: Vec<MeasuredGroup> = found.sink.groups.iter().map(group).collect();
    groups.sort_by(|group, other| group.key.cmp(&other.key));
    groups
}
