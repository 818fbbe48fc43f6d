//! Counts of values by size and slice of time, in bounded memory, for quantiles of resampled time.

use std::collections::BTreeMap;

use stats::weighted_sum;

use super::grid::Grid;
use crate::distribution::{bucket, upper_end};

/// Max single values before buckets are used.
const MAX_LOOSE: usize = 4096;

/// Counts by bucket and slice.
#[derive(Clone, Debug, Default)]
pub(crate) struct SlicedHistogram {
    /// Single values by bucket and slice; few groups have more.
    loose: Vec<(u16, u8)>,
    /// Counts by bucket and slice, for groups with many values.
    rows: BTreeMap<u16, Vec<u32>>,
}

impl SlicedHistogram {
    /// Counts a value; `slices` is the number of slices.
    pub(crate) fn add(&mut self, value: u64, slice: usize, slices: usize) {
        let bucket = bucket(value) as u16;
        if self.rows.is_empty() && self.loose.len() < MAX_LOOSE {
            self.loose.push((bucket, slice as u8));
            return;
        }
        self.spill(slices);
        self.count(bucket, slice, slices, 1);
    }

    fn spill(&mut self, slices: usize) {
        for (bucket, slice) in std::mem::take(&mut self.loose) {
            self.count(bucket, usize::from(slice), slices, 1);
        }
    }

    fn count(&mut self, bucket: u16, slice: usize, slices: usize, more: u32) {
        let row = self.rows.entry(bucket).or_default();
        if row.len() < slices {
            row.resize(slices, 0);
        }
        if let Some(count) = row.get_mut(slice) {
            *count = count.saturating_add(more);
        }
    }

    /// Converts to a coarser grid.
    pub(crate) fn regrid(&mut self, from: &Grid, to: &Grid) {
        for (_, slice) in &mut self.loose {
            *slice = from.slice_in(to, usize::from(*slice)) as u8;
        }
        for row in self.rows.values_mut() {
            let mut coarse = vec![0u32; to.len()];
            for (slice, count) in row.iter().enumerate() {
                if let Some(sum) = coarse.get_mut(from.slice_in(to, slice)) {
                    *sum = sum.saturating_add(*count);
                }
            }
            *row = coarse;
        }
    }

    /// Adds the counts of another histogram on the same grid.
    pub(crate) fn merge(&mut self, other: &Self, slices: usize) {
        if self.rows.is_empty()
            && other.rows.is_empty()
            && self.loose.len() + other.loose.len() <= MAX_LOOSE
        {
            self.loose.extend_from_slice(&other.loose);
            return;
        }
        self.spill(slices);
        for (bucket, slice) in &other.loose {
            self.count(*bucket, usize::from(*slice), slices, 1);
        }
        for (bucket, row) in &other.rows {
            for (slice, more) in row.iter().enumerate().filter(|(_, more)| **more > 0) {
                self.count(*bucket, slice, slices, *more);
            }
        }
    }

    /// Cumulative counts by bucket, for quantiles of many resamples.
    pub(crate) fn cumulative(&self, slices: usize) -> Cumulative {
        let mut rows = self.rows.clone();
        for (bucket, slice) in &self.loose {
            let row = rows.entry(*bucket).or_insert_with(|| vec![0; slices]);
            if let Some(count) = row.get_mut(usize::from(*slice)) {
                *count += 1;
            }
        }
        let mut sums = vec![0u32; slices];
        let mut cumulative = Cumulative { buckets: Vec::new(), sums: Vec::new() };
        for (bucket, row) in rows {
            for (sum, count) in sums.iter_mut().zip(row) {
                *sum = sum.saturating_add(count);
            }
            cumulative.buckets.push(bucket);
            cumulative.sums.push(sums.clone());
        }
        cumulative
    }
}

/// Cumulative counts by bucket and slice.
#[derive(Debug)]
pub(crate) struct Cumulative {
    buckets: Vec<u16>,
    sums: Vec<Vec<u32>>,
}

impl Cumulative {
    /// Quantile over all slices with weights, interpolated within the bucket. `None` without values.
    pub(crate) fn quantile(&self, weights: &[u16], per_mille: u64) -> Option<f64> {
        let weighted = |at: usize| self.sums.get(at).map_or(0, |sums| weighted_sum(sums, weights));
        let all = weighted(self.buckets.len().checked_sub(1)?);
        if all == 0 {
            return None;
        }
        let rank = all as f64 * per_mille as f64 / 1000.0;
        let (mut low, mut high) = (0, self.buckets.len() - 1);
        while low < high {
            let middle = usize::midpoint(low, high);
            if (weighted(middle) as f64) < rank {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let below = if low == 0 { 0 } else { weighted(low - 1) };
        let within = weighted(low).saturating_sub(below).max(1);
        let bucket = usize::from(*self.buckets.get(low)?);
        let (min, max) = ends(bucket);
        Some(min + (max - min) * ((rank - below as f64) / within as f64).clamp(0.0, 1.0))
    }

    /// By slice: number of values up to `value`, minus the expected number for the quantile `per_mille`. This is
    /// the slice's contribution to the deviation.
    pub(crate) fn pull(&self, value: u64, per_mille: u64) -> Vec<f64> {
        let at = self
            .buckets
            .partition_point(|bucket_index| usize::from(*bucket_index) <= bucket(value));
        let none = Vec::new();
        let below = at.checked_sub(1).and_then(|at| self.sums.get(at)).unwrap_or(&none);
        let all = self.sums.last().unwrap_or(&none);
        let share = per_mille as f64 / 1000.0;
        let count = |sums: &[u32], slice: usize| f64::from(sums.get(slice).copied().unwrap_or(0));
        (0..all.len()).map(|slice| count(below, slice) - share * count(all, slice)).collect()
    }
}

fn ends(bucket: usize) -> (f64, f64) {
    let min = bucket.checked_sub(1).map_or(0.0, |before| upper_end(before) as f64 + 1.0);
    (min, upper_end(bucket) as f64 + 1.0)
}

/// Standard error of a quantile near `value` because of buckets: the standard deviation of a uniform distribution
/// over its bucket.
pub(crate) fn coarseness(value: u64) -> f64 {
    let (min, max) = ends(bucket(value));
    (max - min) / 12f64.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::Distribution;
    use proptest::prelude::*;

    proptest! {
        /// The oracle is the distribution of all values in the drawn slices.
        #[test]
        fn quantiles_are_those_of_the_values_drawn(
            values in prop::collection::vec((1u64..1_000_000_000, 0usize..16), 1..6000),
            weights in prop::collection::vec(0u16..3, 16),
            per_mille in 1u64..1000,
        ) {
            let mut histogram = SlicedHistogram::default();
            let mut drawn = Distribution::default();
            for &(value, slice) in &values {
                histogram.add(value, slice, 16);
                (0..weights[slice]).for_each(|_| drawn.add(value));
            }
            let found = histogram.cumulative(16).quantile(&weights, per_mille);
            prop_assert_eq!(found.is_some(), drawn.count() > 0);
            if let (Some(found), [Some(known)]) = (found, drawn.percentiles([per_mille])) {
                // Both are in the bucket of the value with this rank.
                prop_assert!((found / known as f64 - 1.0).abs() <= 1.0 / 128.0 || (found - known as f64).abs() <= 1.0, "{} {}", found, known);
            }
        }

        #[test]
        fn merging_equals_adding(
            first in prop::collection::vec((any::<u64>(), 0usize..16), 0..5000),
            right in prop::collection::vec((any::<u64>(), 0usize..16), 0..5000),
        ) {
            let histogram_of = |values: &[(u64, usize)]| {
                let mut histogram = SlicedHistogram::default();
                values.iter().for_each(|&(value, slice)| histogram.add(value, slice, 16));
                histogram
            };
            let mut merged = histogram_of(&first);
            merged.merge(&histogram_of(&right), 16);
            let (merged, all) = (merged.cumulative(16), histogram_of(&[first, right].concat()).cumulative(16));
            prop_assert_eq!(merged.buckets, all.buckets);
            prop_assert_eq!(merged.sums, all.sums);
        }
    }
}
