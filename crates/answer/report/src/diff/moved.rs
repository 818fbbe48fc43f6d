//! Which steps of requests another one does on the other side: what a comparison of ways is for.

use std::collections::BTreeMap;

use analyses::diff::{Diff, DiffRow, KeyValue, Moved, MovedFrom, Unit};
use printable::line;
use schemars::JsonSchema;
use serde::Serialize;

use super::numbers::number;
use super::words::metric_of;

/// A step, by what the requests begin with and its name.
type Step<'d> = (&'d KeyValue, &'d str, &'d str);

/// What performs a step on each side, and the mean duration of the hop to it.
#[derive(Debug, Default)]
struct Doers<'d> {
    a: Vec<(&'d str, f64)>,
    b: Vec<(&'d str, f64)>,
}

/// A line for each step that is done by someone on one side and by someone else on the other.
pub(super) fn notes(diff: &Diff) -> Vec<String> {
    let mut steps: BTreeMap<Step<'_>, Doers<'_>> = BTreeMap::new();
    for row in diff.rows.iter().filter(|row| is_mean(diff, row)) {
        let [vm, KeyValue::Text(start), KeyValue::Text(step), KeyValue::Text(on)] = &*row.key
        else {
            continue;
        };
        let doers = steps.entry((vm, start.as_str(), step.as_str())).or_default();
        doers.a.extend(row.a.value.map(|mean| (on.as_str(), mean)));
        doers.b.extend(row.b.value.map(|mean| (on.as_str(), mean)));
    }
    let moved = |((_, start, step), doers): (Step<'_>, Doers<'_>)| {
        let ([(on_a, mean_a)], [(on_b, mean_b)]) = (doers.a.as_slice(), doers.b.as_slice()) else {
            return None;
        };
        let time = |mean: f64| number(mean, Unit::Time, diff.nanoseconds);
        (on_a != on_b).then(|| {
            let (mean_a, mean_b) = (time(*mean_a), time(*mean_b));
            format!("{start}: step {step} is on {on_a} in A, {mean_a} after the previous step; on {on_b} in B, {mean_b}")
        })
    };
    steps.into_iter().filter_map(moved).collect()
}

/// A function that others call on the second side than on the first.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct MovedFunction<'r> {
    /// The function.
    function: &'r str,
    /// Side A.
    a: Below<'r>,
    /// Side B.
    b: Below<'r>,
}

/// Side A.
#[derive(Debug, JsonSchema, Serialize)]
struct Below<'r> {
    /// The function that called it most; null: it is where stacks begin.
    below: Option<&'r str>,
    /// What the threads were that ran it, or what their vCPUs did.
    part: &'r str,
    /// Time per second in the function and its callees, for all callers.
    #[schemars(extend("minimum" = 0))]
    ns_per_s: f64,
}

impl<'r> MovedFunction<'r> {
    pub(super) fn new(moved: &'r Moved) -> Self {
        Self { function: &moved.function, a: Below::new(&moved.from), b: Below::new(&moved.to) }
    }
}

impl<'r> Below<'r> {
    fn new(from: &'r MovedFrom) -> Self {
        let below = Some(from.below.as_str()).filter(|below| !below.is_empty());
        Self { below, part: &from.part, ns_per_s: from.ns_per_s }
    }
}

/// A line for each function that others call on the second side than on the first.
pub(super) fn functions(diff: &Diff) -> impl Iterator<Item = String> {
    let from = |place: &MovedFrom| {
        let rate = number(place.ns_per_s, Unit::TimePerSecond, diff.nanoseconds);
        let below = match place.below.as_str() {
            "" => place.part.clone(),
            below => format!("{below} ({})", place.part),
        };
        format!("below {}, {rate}", line(&below))
    };
    diff.moved.iter().map(move |change| {
        let (a, b) = (from(&change.from), from(&change.to));
        format!("moved: {} is {a} in A; {b} in B", line(&change.function))
    })
}

fn is_mean(diff: &Diff, row: &DiffRow) -> bool {
    diff.question.name == "path"
        && metric_of(diff, row).is_some_and(|metric| metric.short == "mean")
}
