//! The JSON document of paths.

use analyses::distribution::Distribution;
use analyses::path::{Actor, Example, ExampleOf, ExampleStep, Hop, Path};
use schemars::JsonSchema;
use serde::Serialize;

use super::{PER_MILLE, PathReport};
use crate::json::{Span, times};
use crate::losses::LossSums;

/// What `hyperscope path --format json` prints: ways that requests take between guest and host, hop by hop. See
/// docs/path.md.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct Document<'p> {
    schema: &'static str,
    /// Paths of the recordings, as they were named.
    sources: &'p [String],
    /// How guests' clocks were aligned, a line each.
    alignment: &'p [String],
    #[serde(flatten)]
    span: Span,
    /// What the recordings lost.
    losses: LossSums,
    /// Requests that were handed on, and whose end was not seen.
    unfinished: u64,
    /// Requests that were under way when events were lost: they are not followed on.
    interrupted: u64,
    /// Requests on ways that were too many to be kept apart.
    others: u64,
    /// Requests that are done: the sum of `count` over all paths, and `others`.
    requests: u64,
    /// A row for each way, variants by optional steps together; the one that took longest, all its requests
    /// together, first.
    paths: Vec<OnePath<'p>>,
}

#[derive(Debug, JsonSchema, Serialize)]
struct OnePath<'p> {
    /// The first step, and what performs the other steps in most of its requests.
    name: &'p str,
    /// The VM, as exits calls it; null where the request is no VM's.
    vm: Option<&'p str>,
    /// The step it begins with.
    start: &'p str,
    /// Whether the guest goes on because of it, or an end asked for was reached; else it ended on the host.
    returns: bool,
    /// Requests that took it.
    #[schemars(extend("minimum" = 1))]
    count: u64,
    /// Ways that differ by optional steps, which the path has together.
    #[schemars(extend("minimum" = 1))]
    variants: u64,
    /// Whether it has less than 1% of all requests and less than 1% of their time.
    rare: bool,
    /// From its first step to its last.
    total: Quantiles,
    /// From step to step, in order. Those that a request took add up to its total.
    hops: Vec<OneHop<'p>>,
    /// The steps of one request of the commonest variant whose total is near the median.
    example: Vec<Step<'p>>,
    /// Three of its requests, step by step; the same one may be several of them.
    #[schemars(extend("maxItems" = 3))]
    examples: Vec<OneExample<'p>>,
}

/// From one step to the next; where steps are optional, from the one that the request took before it.
#[derive(Debug, JsonSchema, Serialize)]
struct OneHop<'p> {
    /// The step it begins with, in most of the requests that took it.
    from: &'p str,
    /// The step it ends with.
    to: &'p str,
    /// What performs the step that it ends with.
    #[schemars(extend("enum" = Actor::ALL.map(Actor::name)))]
    on: &'static str,
    /// Requests that took it: all of the path's, or fewer where the step is optional.
    #[schemars(extend("minimum" = 1))]
    count: u64,
    #[serde(flatten)]
    times: Quantiles,
}

/// A step of a request, with the place of the hop that it ends: the first step ends none.
#[derive(Debug, JsonSchema, Serialize)]
struct Step<'p> {
    /// The place in `hops` of the one that ends with it, from 0; null for the first step.
    hop: Option<usize>,
    #[serde(flatten)]
    ts: StepTime,
    /// What happened.
    what: &'p str,
    /// Who does it: the guest, the thread that runs a vCPU, another thread of the VMM, a vhost worker, an interrupt
    /// of the host, any other thread of the host, or one that is the recording itself.
    #[schemars(extend("enum" = Actor::ALL.map(Actor::name)))]
    on: &'static str,
}

/// A step.
#[derive(Debug, JsonSchema, Serialize)]
struct PlacedStep<'p> {
    #[serde(flatten)]
    step: Step<'p>,
    /// The recording that has it, as `sources` names it.
    source: Option<&'p str>,
    /// The CPU it was recorded on: the guest's, in a guest's recording.
    cpu: u16,
    /// Id of the thread that does it; null in an interrupt, which is no thread's work.
    tid: Option<u32>,
}

/// A request.
#[derive(Debug, JsonSchema, Serialize)]
struct OneExample<'p> {
    /// By which `critical --request` asks for it: the path's place in `paths`, from 1, and `of`.
    id: String,
    /// Which one: `p50`, the one in `example`; `p99`, of any variant, whose total is near the path's 99th
    /// percentile; `worst`, the one that took longest.
    #[schemars(extend("enum" = ["p50", "p99", "worst"]))]
    of: &'static str,
    #[serde(flatten)]
    total: Total,
    /// Its steps.
    steps: Vec<PlacedStep<'p>>,
}

times! {
    /// How long something takes.
    struct Quantiles {
        /// Half of them took no longer. Null where the recording's clock has no nanoseconds.
        p50 = "p50",
        /// Nine in ten took no longer. Null where the recording's clock has no nanoseconds.
        p90 = "p90",
        /// 99 in 100 took no longer. Null where the recording's clock has no nanoseconds.
        p99 = "p99",
        /// The arithmetic mean. Null where the recording's clock has no nanoseconds.
        mean = "mean",
    }
}

times! {
    /// When a step is.
    struct StepTime {
        /// When, on the host's clock. Null where that has no nanoseconds.
        ts = "ts",
    }
}

times! {
    /// How long a request took.
    struct Total {
        /// From its first step to its last. Null where the recording's clock has no nanoseconds.
        total = "total",
    }
}

impl<'p> Document<'p> {
    /// With the first `most` paths.
    pub(super) fn new(report: &'p PathReport, max: usize) -> Self {
        let found = &report.paths;
        let paths = (1..).zip(&found.paths).take(max);
        Self {
            schema: "hyperscope.path/1",
            sources: &report.sources,
            alignment: &report.alignment,
            span: Span { in_ns: found.nanoseconds, span: Some(found.span_ns) },
            losses: LossSums::new(found.losses.iter(), found.interrupted),
            unfinished: found.unfinished,
            interrupted: found.interrupted,
            others: found.others,
            requests: found.requests,
            paths: paths
                .map(|path| OnePath::new(path, found.nanoseconds, &report.sources))
                .collect(),
        }
    }
}

impl<'p> OnePath<'p> {
    fn new((at, path): (usize, &'p Path), ns: bool, sources: &'p [String]) -> Self {
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
            hops: path.hops.iter().map(|hop| OneHop::new(hop, ns)).collect(),
            example: median.map(|step| Step::new(step, ns)).collect(),
            examples: examples.map(|example| OneExample::new(example, (ns, at), sources)).collect(),
        }
    }
}

impl<'p> OneHop<'p> {
    fn new(hop: &'p Hop, ns: bool) -> Self {
        let times = quantiles(&hop.times, ns);
        Self { from: &hop.from, to: &hop.to, on: hop.on.name(), count: hop.times.count(), times }
    }
}

impl<'p> Step<'p> {
    fn new((step, hop): (&'p ExampleStep, Option<usize>), ns: bool) -> Self {
        let ts = StepTime { in_ns: ns, ts: Some(step.ts_ns) };
        Self { hop, ts, what: &step.what, on: step.on.name() }
    }
}

impl<'p> OneExample<'p> {
    fn new(example: &'p Example, (ns, path): (bool, usize), sources: &'p [String]) -> Self {
        let placed = |step: (&'p ExampleStep, Option<usize>)| {
            let place = step.0.place;
            let source = sources.get(usize::from(place.recording)).map(String::as_str);
            let tid = (step.0.on != Actor::Interrupt).then_some(place.thread);
            PlacedStep { step: Step::new(step, ns), source, cpu: place.cpu, tid }
        };
        Self {
            id: format!("{path}:{}", example.kind.name()),
            of: example.kind.name(),
            total: Total { in_ns: ns, total: Some(example.total_ns()) },
            steps: steps(example).map(placed).collect(),
        }
    }
}

fn quantiles(times: &Distribution, ns: bool) -> Quantiles {
    let [p50, p90, p99] = times.percentiles(PER_MILLE);
    let mean = times.mean().map(|mean| mean.round() as u64);
    Quantiles { in_ns: ns, p50, p90, p99, mean }
}

/// The steps of a request, each with the place of the hop that it ends.
fn steps(example: &Example) -> impl Iterator<Item = (&ExampleStep, Option<usize>)> {
    example.steps.iter().zip(std::iter::once(None).chain(example.hops.iter().copied().map(Some)))
}
