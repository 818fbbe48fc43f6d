//! Puts requests that took the same steps together, and measures the steps.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::labels::{Label, Labels};
use super::machines::Machines;
use super::requests::{Request, RequestPass, RequestSink};
use super::{Actor, ExampleStep, Hop, Path, Paths};
use crate::Distribution;

/// Ways that are kept apart.
const MOST_PATHS: usize = 4096;

/// Requests of a path that are kept to choose an example from.
const MOST_EXAMPLES: usize = 64;

/// A path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    vm: Option<u16>,
    returns: bool,
    steps: Vec<(Label, Actor)>,
}

/// Requests that went one path.
#[derive(Debug)]
struct PathStats {
    total: Distribution,
    /// One less than there are steps.
    hops: Vec<Distribution>,
    /// Times of the steps of some requests.
    examples: Vec<Vec<u64>>,
}

impl PathStats {
    fn new(steps: usize) -> Self {
        let hops = vec![Distribution::default(); steps.saturating_sub(1)];
        Self { total: Distribution::default(), hops, examples: Vec::new() }
    }

    fn add(&mut self, stamps_ns: Vec<u64>) {
        for (hop, two) in self.hops.iter_mut().zip(stamps_ns.windows(2)) {
            if let [from_ns, to_ns] = two {
                hop.add(to_ns.saturating_sub(*from_ns));
            }
        }
        self.total.add(length(&stamps_ns));
        if self.examples.len() < MOST_EXAMPLES {
            self.examples.push(stamps_ns);
        }
    }

    fn example(&self) -> Option<&Vec<u64>> {
        let [median] = self.total.percentiles([500]);
        let median = median.unwrap_or(0);
        self.examples.iter().min_by_key(|stamps_ns| length(stamps_ns).abs_diff(median))
    }
}

fn length(stamps_ns: &[u64]) -> u64 {
    match (stamps_ns.first(), stamps_ns.last()) {
        (Some(first), Some(last)) => last.saturating_sub(*first),
        _ => 0,
    }
}

/// All paths so far.
#[derive(Debug, Default)]
pub(super) struct PathTable {
    paths: FxHashMap<Key, PathStats>,
    others: u64,
}

impl RequestSink for PathTable {
    fn request(&mut self, request: &Request<'_>) {
        let steps = request.steps.iter().map(|step| (step.label, step.on)).collect();
        let key = Key { vm: request.vm, returns: request.returns, steps };
        if self.paths.len() >= MOST_PATHS && !self.paths.contains_key(&key) {
            self.others += 1;
            return;
        }
        let stamps_ns = request.steps.iter().map(|step| step.stamp_ns).collect();
        let length = key.steps.len();
        self.paths.entry(key).or_insert_with(|| PathStats::new(length)).add(stamps_ns);
    }
}

/// The paths that requests were found to take.
pub(super) fn paths(found: RequestPass<PathTable>, machines: &Machines<'_>) -> Paths {
    let paths = found.sink.paths.iter();
    let mut paths: Vec<Path> =
        paths.map(|(key, stats)| path(key, stats, &found.labels, machines)).collect();
    let order = |path: &Path| {
        let steps: Vec<_> = path.hops.iter().map(|hop| (hop.to.clone(), hop.on)).collect();
        (Reverse(path.total.sum()), path.vm.clone(), path.name.clone(), steps)
    };
    paths.sort_by_cached_key(order);
    Paths {
        paths,
        unfinished: found.unfinished,
        interrupted: found.interrupted,
        others: found.sink.others,
        nanoseconds: found.nanoseconds,
        losses: found.losses,
    }
}

fn path(key: &Key, path: &PathStats, labels: &Labels, machines: &Machines<'_>) -> Path {
    let Key { vm, returns, steps } = key;
    let text = |step: &(Label, Actor)| labels.text(step.0).to_owned();
    let hop = |(two, times): (&[(Label, Actor)], &Distribution)| match two {
        [from, to] => Some(Hop { from: text(from), to: text(to), on: to.1, times: times.clone() }),
        _ => None,
    };
    let start = steps.first().map(text).unwrap_or_default();
    let one_way = if *returns { "" } else { ", one way" };
    let name = format!("{start}: {}{one_way}", actors(steps));
    let example = path.example().into_iter().flatten().zip(steps);
    Path {
        name,
        start,
        returns: *returns,
        vm: vm.and_then(|vm| machines.vm_name(vm)).map(str::to_owned),
        total: path.total.clone(),
        hops: steps.windows(2).zip(&path.hops).filter_map(hop).collect(),
        example: example
            .map(|(ts_ns, step)| ExampleStep { ts_ns: *ts_ns, what: text(step), on: step.1 })
            .collect(),
    }
}

/// Who the steps are done by, each once for as long as it stays with it.
fn actors(steps: &[(Label, Actor)]) -> String {
    let mut actors: Vec<&str> = steps.iter().map(|(_, on)| on.name()).collect();
    actors.dedup();
    actors.join(" → ")
}
