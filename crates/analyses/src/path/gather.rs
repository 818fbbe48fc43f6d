//! Puts requests that took the same steps together, and measures the steps.

use std::cmp::Reverse;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use timeline::Losses;

use super::chain::{Chain, Chains};
use super::labels::{Label, Labels};
use super::machines::Machines;
use super::{Actor, ExampleStep, Hop, Path, Paths};
use crate::Distribution;

/// Ways that are kept apart.
const MOST_PATHS: usize = 4096;

/// Requests of a way that are kept to choose an example from.
const MOST_EXAMPLES: usize = 64;

/// A way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    vm: Option<u16>,
    returns: bool,
    steps: Vec<(Label, Actor)>,
}

/// Requests that went one way.
#[derive(Debug)]
struct Way {
    total: Distribution,
    /// One less than there are steps.
    hops: Vec<Distribution>,
    /// Times of the steps of some requests.
    examples: Vec<Vec<u64>>,
}

impl Way {
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

/// All ways so far.
#[derive(Debug, Default)]
pub(super) struct Gather {
    ways: FxHashMap<Key, Way>,
    began: u64,
    done: u64,
    interrupted: u64,
    others: u64,
}

impl Gather {
    /// Requests have begun that are to come back.
    pub(super) fn began(&mut self, chains: &Chains) {
        for chain in chains.iter() {
            self.began += u64::from(chain.root.begin());
        }
    }

    /// Events were lost while so many requests were under way.
    pub(super) fn interrupt(&mut self, requests: u64) {
        self.interrupted += requests;
    }

    /// A request is back in its guest.
    pub(super) fn add(&mut self, chain: &Chain) {
        if chain.root.finish() {
            self.count(chain, true);
        }
    }

    /// The last one has done with a request; nothing happens if there is another.
    pub(super) fn add_last(&mut self, chain: Chain) {
        // Each step holds its request once.
        if Arc::strong_count(&chain) == 1
            && Arc::strong_count(&chain.root) == usize::from(chain.depth)
            && chain.depth > 1
            && chain.root.finish()
        {
            self.count(&chain, false);
        }
    }

    fn count(&mut self, chain: &Chain, returns: bool) {
        self.began += u64::from(chain.root.begin());
        self.done += 1;
        let (mut steps, mut stamps_ns) = (Vec::new(), Vec::new());
        let mut at = Some(chain);
        while let Some(node) = at {
            steps.push((node.label, node.on));
            stamps_ns.push(node.stamp_ns);
            at = node.parent.as_ref();
        }
        steps.reverse();
        stamps_ns.reverse();
        let key = Key { vm: chain.root.vm, returns, steps };
        if self.ways.len() >= MOST_PATHS && !self.ways.contains_key(&key) {
            self.others += 1;
            return;
        }
        let length = key.steps.len();
        self.ways.entry(key).or_insert_with(|| Way::new(length)).add(stamps_ns);
    }

    pub(super) fn finish(
        self,
        labels: &Labels,
        machines: &Machines<'_>,
        nanoseconds: bool,
        losses: Vec<Losses>,
    ) -> Paths {
        let mut paths: Vec<Path> =
            self.ways.iter().map(|(key, way)| path(key, way, labels, machines)).collect();
        let order = |path: &Path| {
            let steps: Vec<_> = path.hops.iter().map(|hop| (hop.to.clone(), hop.on)).collect();
            (Reverse(path.total.sum()), path.vm.clone(), path.name.clone(), steps)
        };
        paths.sort_by_cached_key(order);
        Paths {
            paths,
            unfinished: self.began.saturating_sub(self.done + self.interrupted),
            interrupted: self.interrupted,
            others: self.others,
            nanoseconds,
            losses,
        }
    }
}

fn path(key: &Key, way: &Way, labels: &Labels, machines: &Machines<'_>) -> Path {
    let Key { vm, returns, steps } = key;
    let text = |step: &(Label, Actor)| labels.text(step.0).to_owned();
    let hop = |(two, times): (&[(Label, Actor)], &Distribution)| match two {
        [from, to] => Some(Hop { from: text(from), to: text(to), on: to.1, times: times.clone() }),
        _ => None,
    };
    let start = steps.first().map(text).unwrap_or_default();
    let one_way = if *returns { "" } else { ", one way" };
    let name = format!("{start}: {}{one_way}", actors(steps));
    let example = way.example().into_iter().flatten().zip(steps);
    Path {
        name,
        start,
        returns: *returns,
        vm: vm.and_then(|vm| machines.vm_name(vm)).map(str::to_owned),
        total: way.total.clone(),
        hops: steps.windows(2).zip(&way.hops).filter_map(hop).collect(),
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
