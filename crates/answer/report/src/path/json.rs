//! The JSON document of paths.

use analyses::distribution::Distribution;
use analyses::path::{Actor, Example, ExampleOf, ExampleStep, Hop, Path};
use schemars::JsonSchema;
use serde::Serialize;

use super::{PER_MILLE, PathReport};
use crate::json::{Span, times};
use crate::losses::LossSums;

/// Output of `hyperscope path --format json`: the paths of requests between guest and host, hop by hop. See
/// docs/path.md.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct Document<'p> {
    schema: &'static str,
    /// Paths of the recordings, as they were named.
    sources: &'p [String],
    /// How guests' clocks were aligned, one line per guest.
    alignment: &'p [String],
    #[serde(flatten)]
    span: Span,
    /// Losses of all sources.
    losses: LossSums,
    /// Requests that were handed on and whose end was not seen.
    unfinished: u64,
    /// Requests that were in progress when events were lost: they are not followed any further.
    interrupted: u64,
    /// Requests on paths beyond the limit of separate paths.
    others: u64,
    /// Finished requests: the sum of `count` over all paths, and `others`.
    requests: u64,
    /// One row per path, with variants by optional steps together; in descending order of time over all their
    /// requests.
    paths: Vec<OnePath<'p>>,
}

#[derive(Debug, JsonSchema, Serialize)]
struct OnePath<'p> {
    /// The first step, and the actors of the other steps in most of its requests.
    name: &'p str,
    /// The VM, as in exits; null if the request belongs to no VM.
    vm: Option<&'p str>,
    /// Its first step.
    start: &'p str,
    /// Whether the guest continues because of it, or a requested end was reached; otherwise it ended on the host.
    returns: bool,
    /// Requests that took it.
    #[schemars(extend("minimum" = 1))]
    count: u64,
    /// Number of variants by optional steps that the path combines.
    #[schemars(extend("minimum" = 1))]
    variants: u64,
    /// Whether it has less than 1% of all requests and less than 1% of their time.
    rare: bool,
    /// From its first step to its last.
    total: Quantiles,
    /// From step to step, in order. The hops of a request add up to its total.
    hops: Vec<OneHop<'p>>,
    /// The steps of one request of the most common variant whose total is near the median.
    example: Vec<Step<'p>>,
    /// Three of its requests, step by step; they may be the same request.
    #[schemars(extend("maxItems" = 3))]
    examples: Vec<OneExample<'p>>,
}

/// A hop from one step to the next; with optional steps, from the previous step of the request.
#[derive(Debug, JsonSchema, Serialize)]
struct OneHop<'p> {
    /// The step at its beginning, in most of its requests.
    from: &'p str,
    /// The step at its end.
    to: &'p str,
    /// The actor of the step at its end.
    #[schemars(extend("enum" = Actor::ALL.map(Actor::name)))]
    on: &'static str,
    /// Requests with this hop: all of the path's, or fewer if the step is optional.
    #[schemars(extend("minimum" = 1))]
    count: u64,
    #[serde(flatten)]
    times: Quantiles,
}

/// A step of a request, with the index of the hop that it ends.
#[derive(Debug, JsonSchema, Serialize)]
struct Step<'p> {
    /// Index in `hops` of the hop that it ends, from 0; null for the first step.
    hop: Option<usize>,
    #[serde(flatten)]
    ts: StepTime,
    /// What happened.
    what: &'p str,
    /// Its actor: the guest, the thread that runs a vCPU, another thread of the VMM, a vhost worker, an interrupt
    /// of the host, any other thread of the host, or a thread of the recording itself.
    #[schemars(extend("enum" = Actor::ALL.map(Actor::name)))]
    on: &'static str,
}

/// A step.
#[derive(Debug, JsonSchema, Serialize)]
struct PlacedStep<'p> {
    #[serde(flatten)]
    step: Step<'p>,
    /// The recording that contains it, as in `sources`.
    source: Option<&'p str>,
    /// The CPU that recorded it: the guest's, in a guest's recording.
    cpu: u16,
    /// Id of its thread; null in an interrupt.
    tid: Option<u32>,
}

/// A request.
#[derive(Debug, JsonSchema, Serialize)]
struct OneExample<'p> {
    /// Its id for `critical --request`: the position of the path in `paths`, from 1, and `of`.
    id: String,
    /// Its kind: `p50`, the request in `example`; `p99`, of any variant, whose total is near the path's 99th
    /// percentile; `worst`, the longest.
    #[schemars(extend("enum" = ["p50", "p99", "worst"]))]
    of: &'static str,
    #[serde(flatten)]
    total: Total,
    /// Its steps.
    steps: Vec<PlacedStep<'p>>,
}

times! {
    /// Quantiles of durations.
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
    /// The time of a step.
    struct StepTime {
        /// Time on the host's clock. Null where that has no nanoseconds.
        ts = "ts",
    }
}

times! {
    /// Duration of a request.
    struct Total {
        /// From its first step to its last. Null where the recording's clock has no nanoseconds.
        total = "total",
    }
}

impl<'p> Document<'p> {
    /// Creates the document with the first `max` paths.
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

/// The steps of a request, each with the index of the hop that it ends.
fn steps(example: &Example) -> impl Iterator<Item = (&ExampleStep, Option<usize>)> {
    example.steps.iter().zip(std::iter::once(None).chain(example.hops.iter().copied().map(Some)))
}
