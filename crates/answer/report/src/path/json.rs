//! The JSON document of paths.

use analyses::distribution::Distribution;
use analyses::path::{Actor, Example, ExampleOf, ExampleStep, Hop, Path};
use serde::Serialize;
use serde_json::Value;

use super::{PER_MILLE, PathReport};
use crate::json::Times;
use crate::losses;

/// Docs/formats/path.md says what each field is.
#[derive(Debug, Serialize)]
pub(crate) struct Document<'p> {
    schema: &'static str,
    sources: &'p [String],
    alignment: &'p [String],
    #[serde(flatten)]
    span: Times<1>,
    losses: Value,
    unfinished: u64,
    interrupted: u64,
    others: u64,
    requests: u64,
    paths: Vec<OnePath<'p>>,
}

#[derive(Debug, Serialize)]
struct OnePath<'p> {
    name: &'p str,
    vm: Option<&'p str>,
    start: &'p str,
    returns: bool,
    count: u64,
    variants: u64,
    rare: bool,
    total: Times<4>,
    hops: Vec<OneHop<'p>>,
    example: Vec<Step<'p>>,
    examples: Vec<OneExample<'p>>,
}

#[derive(Debug, Serialize)]
struct OneHop<'p> {
    from: &'p str,
    to: &'p str,
    on: &'static str,
    count: u64,
    #[serde(flatten)]
    times: Times<4>,
}

/// A step of a request, with the place of the hop that it ends: the first step ends none.
#[derive(Debug, Serialize)]
struct Step<'p> {
    hop: Option<usize>,
    #[serde(flatten)]
    ts: Times<1>,
    what: &'p str,
    on: &'static str,
}

#[derive(Debug, Serialize)]
struct PlacedStep<'p> {
    #[serde(flatten)]
    step: Step<'p>,
    source: Option<&'p str>,
    cpu: u16,
    /// An interrupt's work is not that of the thread that it hit.
    tid: Option<u32>,
}

#[derive(Debug, Serialize)]
struct OneExample<'p> {
    id: String,
    of: &'static str,
    #[serde(flatten)]
    total: Times<1>,
    steps: Vec<PlacedStep<'p>>,
}

impl<'p> Document<'p> {
    /// With the first `most` paths.
    pub(super) fn of(report: &'p PathReport, most: usize) -> Self {
        let found = &report.paths;
        let paths = (1..).zip(&found.paths).take(most);
        Self {
            schema: "hyperscope.path/1",
            sources: &report.sources,
            alignment: &report.alignment,
            span: Times(found.nanoseconds, [("span", Some(found.span_ns))]),
            losses: losses::json(found.losses.iter(), found.interrupted),
            unfinished: found.unfinished,
            interrupted: found.interrupted,
            others: found.others,
            requests: found.requests,
            paths: paths
                .map(|path| OnePath::of(path, found.nanoseconds, &report.sources))
                .collect(),
        }
    }
}

impl<'p> OnePath<'p> {
    fn of((at, path): (usize, &'p Path), ns: bool, sources: &'p [String]) -> Self {
        let median = path.example(ExampleOf::Median).into_iter().flat_map(steps);
        let examples = path.examples.iter();
        Self {
            name: &path.name,
            vm: path.vm.as_deref(),
            start: &path.start,
            returns: path.returns,
            count: path.total.count(),
            variants: path.variants,
            rare: path.is_rare,
            total: quantiles(&path.total, ns),
            hops: path.hops.iter().map(|hop| OneHop::of(hop, ns)).collect(),
            example: median.map(|step| Step::of(step, ns)).collect(),
            examples: examples.map(|one| OneExample::of(one, (ns, at), sources)).collect(),
        }
    }
}

impl<'p> OneHop<'p> {
    fn of(hop: &'p Hop, ns: bool) -> Self {
        let times = quantiles(&hop.times, ns);
        Self { from: &hop.from, to: &hop.to, on: hop.on.name(), count: hop.times.count(), times }
    }
}

impl<'p> Step<'p> {
    fn of((step, hop): (&'p ExampleStep, Option<usize>), ns: bool) -> Self {
        let ts = Times(ns, [("ts", Some(step.ts_ns))]);
        Self { hop, ts, what: &step.what, on: step.on.name() }
    }
}

impl<'p> OneExample<'p> {
    fn of(example: &'p Example, (ns, path): (bool, usize), sources: &'p [String]) -> Self {
        let placed = |one: (&'p ExampleStep, Option<usize>)| {
            let place = one.0.place;
            let source = sources.get(usize::from(place.recording)).map(String::as_str);
            let tid = (one.0.on != Actor::Interrupt).then_some(place.thread);
            PlacedStep { step: Step::of(one, ns), source, cpu: place.cpu, tid }
        };
        Self {
            id: format!("{path}:{}", example.of.name()),
            of: example.of.name(),
            total: Times(ns, [("total", Some(example.total_ns()))]),
            steps: steps(example).map(placed).collect(),
        }
    }
}

fn quantiles(times: &Distribution, ns: bool) -> Times<4> {
    let [p50, p90, p99] = times.percentiles(PER_MILLE);
    let mean = times.mean().map(|mean| mean.round() as u64);
    Times(ns, [("p50", p50), ("p90", p90), ("p99", p99), ("mean", mean)])
}

/// The steps of a request, each with the place of the hop that it ends.
fn steps(example: &Example) -> impl Iterator<Item = (&ExampleStep, Option<usize>)> {
    example.steps.iter().zip(std::iter::once(None).chain(example.hops.iter().copied().map(Some)))
}
