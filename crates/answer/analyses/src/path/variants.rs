//! Merges variants that differ by optional steps into one path: an extra wake-up, a second kick, an interrupt's
//! exit.
//!
//! The most frequent variant comes first. Another variant joins its path if both have the same first and last
//! step, and the steps in between are a supersequence or a subsequence of the path's common steps. At least half
//! of the steps of both must be common; otherwise they are different paths. The time of a step is measured from
//! the previous step of the request, so the steps of a path add up to its time.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::Actor;
use super::labels::Label;
use super::table::{Key, PathStats};
use crate::distribution::Distribution;

/// Max steps of a path with all variants; twice the max of one request.
const MAX_STEPS_TOGETHER: usize = 48;

/// Max paths to compare a variant with: the most frequent ones with the same ends.
const MAX_TRIED: usize = 64;

/// Event and actor of a step.
type What = (Label, Actor);

/// A step of a path, with the sums of all its requests.
#[derive(Debug)]
pub(super) struct FamilyStep {
    pub(super) what: What,
    /// Times since the previous step; empty for the first step.
    pub(super) times: Distribution,
    /// Number of requests by previous step.
    from: FxHashMap<Label, u64>,
}

impl FamilyStep {
    fn new(what: What) -> Self {
        Self { what, times: Distribution::default(), from: FxHashMap::default() }
    }

    fn add(&mut self, before: Label, times: &Distribution) {
        *self.from.entry(before).or_default() += times.count();
        self.times.merge(times);
    }

    /// The most frequent previous step.
    pub(super) fn from(&self) -> Option<Label> {
        let most = self.from.iter().max_by_key(|&(label, count)| (*count, Reverse(*label)));
        most.map(|(label, _)| *label)
    }
}

/// A variant of a path.
#[derive(Debug)]
pub(super) struct Way<'k> {
    pub(super) key: &'k Key,
    pub(super) stats: &'k PathStats,
    /// Indexes of its steps in the path.
    pub(super) at: Vec<usize>,
}

/// A path with its variants.
#[derive(Debug)]
pub(super) struct Family<'k> {
    /// The most frequent variant.
    pub(super) key: &'k Key,
    /// All variants, the most frequent first.
    pub(super) ways: Vec<Way<'k>>,
    pub(super) steps: Vec<FamilyStep>,
    pub(super) total: Distribution,
    /// Steps that all variants have, without the first and the last.
    common: Vec<What>,
}

impl<'k> Family<'k> {
    fn new(key: &'k Key, stats: &'k PathStats) -> Self {
        let mut family = Self {
            key,
            ways: Vec::new(),
            steps: key.steps.iter().map(|step| FamilyStep::new(*step)).collect(),
            total: Distribution::default(),
            common: middle(&key.steps).to_vec(),
        };
        family.add(key, stats, (0..key.steps.len()).collect());
        family
    }

    /// Adds a variant whose steps are at the indexes `at`.
    fn add(&mut self, key: &'k Key, stats: &'k PathStats, at: Vec<usize>) {
        self.total.merge(&stats.total);
        let hops = key.steps.windows(2).zip(at.iter().skip(1)).zip(&stats.hops);
        for ((two, at), times) in hops {
            if let ([before, _], Some(step)) = (two, self.steps.get_mut(*at)) {
                step.add(before.0, times);
            }
        }
        self.ways.push(Way { key, stats, at });
    }

    /// The common steps of the path and a variant; `None` if more than optional steps differ.
    fn common_with(&self, key: &Key) -> Option<Vec<What>> {
        let other = middle(&key.steps);
        let pairs = common(&self.common, other);
        let is_within = pairs.len() == self.common.len() || pairs.len() == other.len();
        let longer = self.key.steps.len().max(key.steps.len());
        let is_alike = 2 * (pairs.len() + 2) >= longer;
        let together = self.steps.len() + other.len() - pairs.len();
        let joins = is_within && is_alike && together <= MAX_STEPS_TOGETHER;
        joins.then(|| pairs.iter().filter_map(|(_, at)| other.get(*at).copied()).collect())
    }

    fn join(&mut self, key: &'k Key, stats: &'k PathStats, common: Vec<What>) {
        self.common = common;
        let at = self.make_room(&key.steps);
        self.add(key, stats, at);
    }

    /// Inserts the missing steps of a variant; returns the indexes of all its steps.
    fn make_room(&mut self, steps: &[What]) -> Vec<usize> {
        let own_steps: Vec<What> = self.steps.iter().map(|step| step.what).collect();
        let mut pairs = vec![(0, 0)];
        pairs.extend(common(middle(&own_steps), middle(steps)).iter().map(|(a, b)| (a + 1, b + 1)));
        pairs.push((own_steps.len() - 1, steps.len() - 1));
        let (mut at, mut moved) =
            (Vec::with_capacity(steps.len()), Vec::with_capacity(own_steps.len()));
        let mut together = Vec::with_capacity(own_steps.len() + steps.len());
        let mut old = std::mem::take(&mut self.steps).into_iter();
        for (own_to, to) in pairs {
            while moved.len() < own_to {
                moved.push(together.len());
                together.extend(old.next());
            }
            while let Some(step) = steps.get(at.len()).filter(|_| at.len() < to) {
                at.push(together.len());
                together.push(FamilyStep::new(*step));
            }
            at.push(together.len());
            moved.push(together.len());
            together.extend(old.next());
        }
        self.steps = together;
        for place in self.ways.iter_mut().flat_map(|way| &mut way.at) {
            *place = moved.get(*place).copied().unwrap_or(*place);
        }
        at
    }
}

/// Groups variants that differ by optional steps.
pub(super) fn families(ways: &FxHashMap<Key, PathStats>) -> Vec<Family<'_>> {
    let mut ways: Vec<(&Key, &PathStats)> = ways.iter().collect();
    ways.sort_by_cached_key(|(key, stats)| {
        let (count, sum) = (stats.total.count(), stats.total.sum());
        (Reverse(count), Reverse(sum), key.vm, key.returns, key.steps.clone())
    });
    let mut families: Vec<Family<'_>> = Vec::new();
    let mut alike: FxHashMap<_, Vec<usize>> = FxHashMap::default();
    for (key, stats) in ways {
        let ends = (key.vm, key.returns, key.steps.first(), key.steps.last());
        let tried = alike.entry(ends).or_default();
        let fits = tried.iter().take(MAX_TRIED).filter_map(|&at| {
            let common = families.get(at)?.common_with(key)?;
            Some((common.len(), at, common))
        });
        match fits.max_by_key(|(length, at, _)| (*length, Reverse(*at))) {
            Some((_, at, common)) => {
                if let Some(family) = families.get_mut(at) {
                    family.join(key, stats, common);
                }
            }
            None => {
                tried.push(families.len());
                families.push(Family::new(key, stats));
            }
        }
    }
    families
}

/// All steps except for the first and the last.
fn middle(steps: &[What]) -> &[What] {
    steps.get(1..steps.len().saturating_sub(1)).unwrap_or(&[])
}

/// Indexes of the longest common subsequence in both lists.
fn common(steps: &[What], other: &[What]) -> Vec<(usize, usize)> {
    let width = other.len() + 1;
    let mut longest = vec![0_u32; (steps.len() + 1) * width];
    let length_at =
        |longest: &[u32], a: usize, b: usize| longest.get(a * width + b).copied().unwrap_or(0);
    for (a, step) in steps.iter().enumerate().rev() {
        for (b, other) in other.iter().enumerate().rev() {
            let length = if step == other {
                length_at(&longest, a + 1, b + 1) + 1
            } else {
                length_at(&longest, a + 1, b).max(length_at(&longest, a, b + 1))
            };
            if let Some(place) = longest.get_mut(a * width + b) {
                *place = length;
            }
        }
    }
    let (mut a, mut b, mut pairs) = (0, 0, Vec::new());
    while let (Some(first), Some(second)) = (steps.get(a), other.get(b)) {
        if first == second {
            pairs.push((a, b));
            (a, b) = (a + 1, b + 1);
        } else if length_at(&longest, a + 1, b) >= length_at(&longest, a, b + 1) {
            a += 1;
        } else {
            b += 1;
        }
    }
    pairs
}
