//! Steps of requests, and functions, that move to another actor between the sides.

use std::collections::BTreeMap;

use analyses::diff::{Diff, DiffRow, KeyValue, Moved, MovedFrom, Unit};
use printable::line;
use schemars::JsonSchema;
use serde::Serialize;

use super::numbers::number;
use super::words::metric_of;

/// A step: the first step of its requests, and its name.
type Step<'d> = (&'d KeyValue, &'d str, &'d str);

/// The actor of a step on each side, and the mean duration of the hop to it.
#[derive(Debug, Default)]
struct Doers<'d> {
    a: Vec<(&'d str, f64)>,
    b: Vec<(&'d str, f64)>,
}

/// One line for each step with different actors on the two sides.
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

/// A function whose main caller differs between the sides.
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
    /// Its main caller; null: it is at the root of stacks.
    below: Option<&'r str>,
    /// The role of the threads that ran it, or the state of their vCPUs.
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

/// One line for each function whose main caller differs between the sides.
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
