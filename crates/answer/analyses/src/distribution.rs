//! Durations of one kind: count, sum, moments, extremes and percentiles, mergeable.
//!
//! Count, sum and sum of squares are integers, so that parts add up and the order of merging does
//! not matter. Percentiles are exact up to [`EXACT_VALUES`] values; beyond that values are counted
//! in buckets whose width is at most 1/256 of their value, and a percentile is the upper end of
//! its bucket.

/// Max values stored individually; more are counted in buckets.
pub const EXACT_VALUES: usize = 4096;

/// Each power of two is cut into `1 << PRECISION_BITS` buckets.
const PRECISION_BITS: u32 = 8;

#[derive(Clone, Debug)]
enum Values {
    Exact(Vec<u64>),
    /// Counts by [`bucket`]; the length depends on the largest value.
    Buckets(Vec<u64>),
}

/// A set of durations in nanoseconds (or ticks, where a recording has no nanoseconds).
#[derive(Clone, Debug)]
pub struct Distribution {
    count: u64,
    sum: u64,
    sum_of_squares: u128,
    min: u64,
    max: u64,
    values: Values,
}

impl Default for Distribution {
    fn default() -> Self {
        Self {
            count: 0,
            sum: 0,
            sum_of_squares: 0,
            min: u64::MAX,
            max: 0,
            values: Values::Exact(Vec::new()),
        }
    }
}

impl Distribution {
    #[inline]
    pub fn add(&mut self, value: u64) {
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        self.sum_of_squares =
            self.sum_of_squares.saturating_add(u128::from(value) * u128::from(value));
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        if let Values::Buckets(buckets) = &mut self.values
            && let Some(slot) = buckets.get_mut(bucket(value))
        {
            *slot += 1;
        } else {
            self.keep(value);
        }
    }

    /// Stores a value individually, or in a bucket.
    #[inline(never)]
    fn keep(&mut self, value: u64) {
        match &mut self.values {
            Values::Exact(values) if values.len() < EXACT_VALUES => values.push(value),
            _ => {
                self.spill();
                self.count_in_bucket(value, 1);
            }
        }
    }

    /// Adds all values of another distribution.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.sum_of_squares = self.sum_of_squares.saturating_add(other.sum_of_squares);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        match (&mut self.values, &other.values) {
            (Values::Exact(mine), Values::Exact(theirs))
                if mine.len() + theirs.len() <= EXACT_VALUES =>
            {
                mine.extend_from_slice(theirs);
            }
            (_, Values::Exact(theirs)) => {
                self.spill();
                for &value in theirs {
                    self.count_in_bucket(value, 1);
                }
            }
            (_, Values::Buckets(theirs)) => {
                self.spill();
                self.add_buckets(theirs);
            }
        }
    }

    /// Converts individual values to buckets.
    fn spill(&mut self) {
        let Values::Exact(values) = &mut self.values else { return };
        let values = std::mem::take(values);
        self.values = Values::Buckets(Vec::new());
        for value in values {
            self.count_in_bucket(value, 1);
        }
    }

    #[inline]
    fn count_in_bucket(&mut self, value: u64, count: u64) {
        let Values::Buckets(buckets) = &mut self.values else { return };
        let at = bucket(value);
        if buckets.len() <= at {
            buckets.resize(at + 1, 0);
        }
        if let Some(slot) = buckets.get_mut(at) {
            *slot += count;
        }
    }

    fn add_buckets(&mut self, theirs: &[u64]) {
        let Values::Buckets(mine) = &mut self.values else { return };
        if mine.len() < theirs.len() {
            mine.resize(theirs.len(), 0);
        }
        for (mine, theirs) in mine.iter_mut().zip(theirs) {
            *mine += theirs;
        }
    }

    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    #[must_use]
    pub fn sum(&self) -> u64 {
        self.sum
    }

    #[must_use]
    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min)
    }

    #[must_use]
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The sample standard deviation; `None` for fewer than two values.
    #[must_use]
    pub fn standard_deviation(&self) -> Option<f64> {
        if self.count < 2 {
            return None;
        }
        // n·Σx² − (Σx)², in integers: exact where floating point would cancel.
        let n = u128::from(self.count);
        let spread = n
            .checked_mul(self.sum_of_squares)?
            .saturating_sub(u128::from(self.sum) * u128::from(self.sum));
        Some((spread as f64 / (n as f64 * (n - 1) as f64)).sqrt())
    }

    /// Standard error of the mean relative to the mean; `None` for fewer than two values.
    #[must_use]
    pub fn relative_error(&self) -> Option<f64> {
        let (mean, sd) = (self.mean()?, self.standard_deviation()?);
        (mean > 0.0).then(|| sd / (self.count as f64).sqrt() / mean)
    }

    /// Counts values by their number of binary digits, from the smallest to the largest without gaps. Each entry
    /// has a power of two as its exclusive upper end; values are at least half of it (0 is below 1).
    #[must_use]
    pub fn by_power_of_two(&self) -> Vec<(u128, u64)> {
        let digits = |value: u64| (u64::BITS - value.leading_zeros()) as usize;
        let mut counts = [0u64; u64::BITS as usize + 1];
        let mut add = |value: u64, count: u64| {
            if let Some(slot) = counts.get_mut(digits(value)) {
                *slot += count;
            }
        };
        match &self.values {
            Values::Exact(values) => values.iter().for_each(|&value| add(value, 1)),
            Values::Buckets(buckets) => {
                let used = buckets.iter().enumerate().filter(|(_, count)| **count > 0);
                used.for_each(|(at, &count)| add(upper_end(at), count));
            }
        }
        let powers = counts.iter().enumerate().map(|(digits, &count)| (1u128 << digits, count));
        let mut rows: Vec<(u128, u64)> = powers.skip_while(|(_, count)| *count == 0).collect();
        while rows.last().is_some_and(|(_, count)| *count == 0) {
            rows.pop();
        }
        rows
    }

    /// Percentiles by the nearest-rank method, one per entry of `per_mille` (500: the median), which must be
    /// ascending. `None` if there are no values.
    #[must_use]
    pub fn percentiles<const N: usize>(&self, per_mille: [u64; N]) -> [Option<u64>; N] {
        if self.count == 0 {
            return [None; N];
        }
        let ranks = per_mille
            .map(|share| (u128::from(self.count) * u128::from(share)).div_ceil(1000).max(1) as u64);
        match &self.values {
            Values::Exact(values) => {
                let mut sorted = values.clone();
                sorted.sort_unstable();
                ranks.map(|rank| sorted.get(rank as usize - 1).copied())
            }
            Values::Buckets(buckets) => {
                ranks.map(|rank| Some(value_of_rank(buckets, rank).clamp(self.min, self.max)))
            }
        }
    }
}

/// Upper end of the bucket that holds the value with this rank.
fn value_of_rank(buckets: &[u64], rank: u64) -> u64 {
    let mut seen = 0;
    for (at, count) in buckets.iter().enumerate() {
        seen += count;
        if seen >= rank {
            return upper_end(at);
        }
    }
    u64::MAX
}

/// Bucket of a value. Values below `1 << PRECISION_BITS` have one bucket each; for larger values, the leading
/// `PRECISION_BITS + 1` bits determine the bucket.
#[inline]
#[must_use]
pub fn bucket(value: u64) -> usize {
    let exponent = (u64::BITS - value.leading_zeros()).saturating_sub(PRECISION_BITS + 1);
    ((u64::from(exponent) << PRECISION_BITS) + (value >> exponent)) as usize
}

/// Largest value of a bucket.
#[must_use]
pub fn upper_end(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let exponent = (bucket >> PRECISION_BITS).saturating_sub(1);
    let mantissa = bucket - (exponent << PRECISION_BITS);
    let above = u128::from(mantissa + 1) << exponent;
    u64::try_from(above - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn distribution_of(values: &[u64]) -> Distribution {
        let mut distribution = Distribution::default();
        values.iter().for_each(|&value| distribution.add(value));
        distribution
    }

    #[test]
    fn mean_and_deviation_of_known_values() {
        let distribution = distribution_of(&[2, 4, 4, 4, 5, 5, 7, 9]);
        assert_eq!(distribution.mean(), Some(5.0));
        let sd = distribution.standard_deviation().unwrap();
        assert!((sd - (32.0f64 / 7.0).sqrt()).abs() < 1e-12);
        assert_eq!(distribution.percentiles([500, 900, 1000]), [Some(4), Some(9), Some(9)]);
    }

    #[test]
    fn nothing_has_no_statistics() {
        let none = Distribution::default();
        assert_eq!(none.percentiles([500]), [None]);
        assert_eq!((none.min(), none.max(), none.mean()), (None, None, None));
        assert_eq!(distribution_of(&[7]).standard_deviation(), None);
    }

    #[test]
    fn values_are_counted_by_power_of_two() {
        assert_eq!(distribution_of(&[]).by_power_of_two(), []);
        assert_eq!(
            distribution_of(&[0, 1, 5, 7, 8]).by_power_of_two(),
            [(1, 1), (2, 1), (4, 0), (8, 2), (16, 1)]
        );
        assert_eq!(distribution_of(&[u64::MAX]).by_power_of_two(), [(1 << 64, 1)]);
        let many: Vec<u64> = (0..5000).map(|at| 900 + at % 200).collect();
        let below = many.iter().filter(|value| **value < 1024).count() as u64;
        assert_eq!(distribution_of(&many).by_power_of_two(), [(1024, below), (2048, 5000 - below)]);
    }

    #[test]
    fn buckets_are_consecutive_and_narrow() {
        let edges = (0..64).flat_map(|bit| {
            let power = 1u64 << bit;
            [power - 1, power, power + power / 3]
        });
        for value in edges.chain([u64::MAX]) {
            let at = bucket(value);
            assert!(value <= upper_end(at), "{value}");
            assert!(at == 0 || value > upper_end(at - 1), "{value}");
            let width = upper_end(at) - value;
            assert!(width <= value / 256, "{value} {width}");
        }
    }

    proptest! {
        #[test]
        fn bucketed_percentiles_stay_within_their_bound(
            seed in prop::collection::vec(0u64..10_000_000_000, 1..400),
            share in 1u64..1000,
        ) {
            let values: Vec<u64> = seed.iter().cycle().take(EXACT_VALUES + 1000).copied().collect();
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let rank = (values.len() as u64 * share).div_ceil(1000) as usize;
            let exact = sorted[rank - 1];
            let [got] = distribution_of(&values).percentiles([share]);
            let got = got.unwrap();
            prop_assert!(got >= exact && got - exact <= exact / 256 + 1);
        }

        #[test]
        fn merging_equals_adding(
            first in prop::collection::vec(any::<u32>(), 0..6000),
            right in prop::collection::vec(any::<u32>(), 0..6000),
        ) {
            let values = |part: &[u32]| part.iter().map(|&v| u64::from(v)).collect::<Vec<_>>();
            let mut merged = distribution_of(&values(&first));
            merged.merge(&distribution_of(&values(&right)));
            let all = distribution_of(&values(&[first, right].concat()));
            prop_assert_eq!(merged.count(), all.count());
            prop_assert_eq!(merged.sum(), all.sum());
            prop_assert_eq!(merged.standard_deviation(), all.standard_deviation());
            prop_assert_eq!(merged.percentiles([500, 999]), all.percentiles([500, 999]));
        }
    }
}
