//! Samples of one kind by code, and the distribution of a time over them.

use std::collections::BTreeMap;

use super::samples::Place;
use super::slices::SliceTimes;
use super::sums::{Seen, StratumSamples};
use super::{SampledTime, weights};

/// Samples of one kind in a stratum, by code or stack.
#[derive(Clone, Debug)]
pub(super) struct SeenBy<C> {
    pub(super) code: BTreeMap<C, Seen>,
    pub(super) samples: u64,
    /// Effective sample size: the number of equally weighted samples with the same precision.
    pub(super) effective: f64,
}

impl<C: Ord> SeenBy<C> {
    /// Groups samples by the code at their places.
    pub(super) fn from_samples(samples: &StratumSamples, code: impl Fn(Place) -> C) -> Self {
        let mut seen: BTreeMap<C, Seen> = BTreeMap::new();
        for (&place, sighting) in &samples.seen {
            let sum = seen.entry(code(place)).or_default();
            sum.samples = sum.samples.saturating_add(sighting.samples);
            sum.weight_ns = sum.weight_ns.saturating_add(sighting.weight_ns);
            sum.by_slice.extend(&sighting.by_slice);
        }
        let effective = weights::effective(samples.weight_ns as f64, samples.squares);
        Self { code: seen, samples: samples.count, effective }
    }

    /// Weights of code by slices.
    pub(super) fn by_slice(&self, code: &C) -> SliceTimes {
        self.code.get(code).map(|sighting| sighting.by_slice.clone()).unwrap_or_default()
    }

    /// Distributes a time over the code; the shares add up to it.
    pub(super) fn shares(&self, time_ns: u64) -> impl Iterator<Item = (&C, SampledTime)> {
        let weights: Vec<u64> = self.code.values().map(|sighting| sighting.weight_ns).collect();
        let shares = weights::shares(time_ns, &weights);
        let effective = self.effective;
        let seen = self.code.iter().zip(shares);
        seen.map(move |((code, sighting), ns)| {
            (code, weights::time(time_ns, ns, sighting.samples, effective))
        })
    }
}
