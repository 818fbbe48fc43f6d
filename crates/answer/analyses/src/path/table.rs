//! Groups requests with the same steps, measures the steps, and merges variants with optional steps into paths.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::examples::{self, Examples, MAX_KEPT};
use super::labels::{Label, Labels};
use super::listed::{ListedRequest, ListingRoom};
use super::machines::Machines;
use super::requests::{Request, RequestPass, RequestSink, Step};
use super::variants::{Family, FamilyStep, families};
use super::{Actor, Hop, Path, Paths};
use crate::distribution::Distribution;
use crate::extent::span_ns;

/// Max distinct variants.
const MAX_PATHS: usize = 4096;

/// A variant: the steps of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) vm: Option<u16>,
    pub(super) returns: bool,
    /// At least two.
    pub(super) steps: Vec<(Label, Actor)>,
}

/// Requests of one variant.
#[derive(Debug)]
pub(super) struct PathStats {
    pub(super) total: Distribution,
    /// Times between steps: one less than there are steps.
    pub(super) hops: Vec<Distribution>,
    /// Stored requests.
    pub(super) examples: Examples,
    /// All requests by end time; empty if they are not listed.
    pub(super) listed: Vec<ListedRequest>,
}

impl PathStats {
    fn new(steps: usize) -> Self {
        let hops = vec![Distribution::default(); steps.saturating_sub(1)];
        Self {
            total: Distribution::default(),
            hops,
            examples: Examples::default(),
            listed: Vec::new(),
        }
    }

    fn add(&mut self, steps: &[Step], room: &mut usize, is_listed: bool) {
        for (hop, two) in self.hops.iter_mut().zip(steps.windows(2)) {
            if let [from, to] = two {
                hop.add(to.stamp_ns.saturating_sub(from.stamp_ns));
            }
        }
        if let [first, .., last] = steps {
            let length_ns = last.stamp_ns.saturating_sub(first.stamp_ns);
            self.total.add(length_ns);
            self.examples.add(length_ns, steps, room);
            if is_listed {
                self.listed.push(ListedRequest { begin_ns: first.stamp_ns, length_ns });
            }
        }
    }
}

/// All variants so far.
#[derive(Debug)]
pub(crate) struct PathTable {
    paths: FxHashMap<Key, PathStats>,
    /// Number of requests that can still be stored as examples.
    room: usize,
    listing: ListingRoom,
    others: u64,
    /// Scratch buffer for the key of one request.
    key: Key,
}

impl Default for PathTable {
    fn default() -> Self {
        Self::listing(0)
    }
}

impl PathTable {
    /// A table that also lists every request, if there are at most `requests`.
    pub(crate) fn listing(requests: usize) -> Self {
        let listing = ListingRoom::for_requests(requests);
        let (paths, key) = (FxHashMap::default(), Key::default());
        Self { paths, room: MAX_KEPT, listing, others: 0, key }
    }

    fn list_none(&mut self) {
        self.listing.give_up();
        for stats in self.paths.values_mut() {
            stats.listed = Vec::new();
        }
    }
}

impl RequestSink for PathTable {
    fn request(&mut self, request: &Request<'_>) {
        (self.key.vm, self.key.returns) = (request.vm, request.returns);
        self.key.steps.clear();
        self.key.steps.extend(request.steps.iter().map(|step| (step.label, step.on)));
        if self.paths.len() >= MAX_PATHS && !self.paths.contains_key(&self.key) {
            self.others += 1;
            self.list_none();
            return;
        }
        if self.listing.is_whole() && !self.listing.take() {
            self.list_none();
        }
        let is_listed = self.listing.is_whole();
        if let Some(stats) = self.paths.get_mut(&self.key) {
            stats.add(request.steps, &mut self.room, is_listed);
            return;
        }
        let mut stats = PathStats::new(request.steps.len());
        stats.add(request.steps, &mut self.room, is_listed);
        self.paths.insert(self.key.clone(), stats);
    }
}

/// The paths of all requests.
pub(super) fn paths(found: RequestPass<PathTable>, machines: &Machines<'_>) -> Paths {
    let families = families(&found.sink.paths);
    let mut paths: Vec<Path> =
        families.iter().map(|family| path(family, &found.labels, machines)).collect();
    let order = |path: &Path| {
        let steps: Vec<_> = path.hops.iter().map(|hop| (hop.to.clone(), hop.on)).collect();
        (Reverse(path.total.sum()), path.vm.clone(), path.name.clone(), steps)
    };
    paths.sort_by_cached_key(order);
    let all_ns = paths.iter().map(|path| path.total.sum()).fold(0, u64::saturating_add);
    let all = paths.iter().map(|path| path.total.count()).fold(0, u64::saturating_add);
    for path in &mut paths {
        path.is_rare = is_rare(path.total.count(), all) && is_rare(path.total.sum(), all_ns);
    }
    Paths {
        requests: all.saturating_add(found.sink.others),
        paths,
        unfinished: found.unfinished,
        interrupted: found.interrupted,
        others: found.sink.others,
        are_listed: found.sink.listing.is_whole(),
        span_ns: span_ns(machines.recordings),
        nanoseconds: found.nanoseconds,
        losses: found.losses,
    }
}

/// Whether `part` is less than a hundredth.
const fn is_rare(part: u64, all: u64) -> bool {
    part < all.div_ceil(100)
}

fn path(family: &Family<'_>, labels: &Labels, machines: &Machines<'_>) -> Path {
    let Key { vm, returns, steps } = family.key;
    let text = |label: Label| labels.text(label).to_owned();
    let hop = |step: &FamilyStep| Hop {
        from: step.from().map(text).unwrap_or_default(),
        to: text(step.what.0),
        on: step.what.1,
        times: step.times.clone(),
    };
    let start = steps.first().map(|(label, _)| text(*label)).unwrap_or_default();
    let one_way = if *returns { "" } else { ", one way" };
    let name = format!("{start}: {}{one_way}", actors(steps.iter().map(|(_, on)| *on)));
    Path {
        name,
        start,
        returns: *returns,
        vm: vm.and_then(|vm| machines.vm_name(vm)).map(str::to_owned),
        total: family.total.clone(),
        variants: family.ways.len() as u64,
        is_rare: false,
        hops: family.steps.iter().skip(1).map(hop).collect(),
        examples: examples::choose(family, labels),
        listed: listed(family),
    }
}

/// All requests of a path by start time.
fn listed(family: &Family<'_>) -> Vec<ListedRequest> {
    let mut all = Vec::with_capacity(family.ways.iter().map(|way| way.stats.listed.len()).sum());
    all.extend(family.ways.iter().flat_map(|way| &way.stats.listed));
    all.sort_unstable();
    all
}

/// Actors of the steps, without consecutive duplicates.
pub(super) fn actors(steps: impl Iterator<Item = Actor>) -> String {
    let mut actors: Vec<&str> = steps.map(Actor::name).collect();
    actors.dedup();
    actors.join(" → ")
}
