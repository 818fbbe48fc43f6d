//! Counts of times in buckets that grow by the fourth root of two. The bounds are those of Prometheus' native
//! histograms of schema 2, in seconds, so that they can be merged and every fourth bound is a power of two.

/// Number of buckets: four per power of two, from 2^-24 s (60 ns) to 16 s.
pub const BUCKETS: usize = 112;
/// Lower bound of the first bucket, as a power of two in seconds.
const FIRST_EXPONENT: i32 = -24;
/// Buckets per power of two.
const EACH_OCTAVE: f64 = 4.0;
const NS_A_SECOND: f64 = 1e9;

/// A histogram of times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    counts: Box<[u64; BUCKETS]>,
    /// Times beyond the last bucket.
    longer: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: Box::new([0; BUCKETS]), longer: 0 }
    }
}

impl Histogram {
    /// From the kernel's counts, and the total number of times: those in no bucket are longer than the last one.
    #[must_use]
    pub fn new(counts: impl IntoIterator<Item = u64>, all: u64) -> Self {
        let mut histogram = Self::default();
        for (to, count) in histogram.counts.iter_mut().zip(counts) {
            *to = count;
        }
        let inside = histogram.counts.iter().copied().fold(0, u64::saturating_add);
        histogram.longer = all.saturating_sub(inside);
        histogram
    }

    /// Adds another's counts.
    pub fn add(&mut self, other: &Self) {
        for (to, count) in self.counts.iter_mut().zip(other.counts.iter()) {
            *to = to.saturating_add(*count);
        }
        self.longer = self.longer.saturating_add(other.longer);
    }

    /// Number of times.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().copied().fold(self.longer, u64::saturating_add)
    }

    /// The counts, shortest times first, without those beyond the last bucket.
    #[must_use]
    pub fn counts(&self) -> &[u64; BUCKETS] {
        &self.counts
    }

    /// The upper bound of a bucket, inclusive, in seconds. It is the lower bound of the next bucket.
    #[must_use]
    pub fn end_s(bucket: usize) -> f64 {
        2f64.powf(f64::from(FIRST_EXPONENT) + (bucket + 1) as f64 / EACH_OCTAVE)
    }

    /// A quantile, computed like Prometheus does for native histograms: by rank, on a logarithmic scale within its
    /// bucket. `None` if empty. The true quantile is in the same bucket, so the error is at most 19%.
    #[must_use]
    pub fn quantile_ns(&self, quantile: f64) -> Option<u64> {
        let all = self.count();
        if all == 0 {
            return None;
        }
        let rank = (quantile.clamp(0.0, 1.0) * all as f64).max(1.0);
        let mut before = 0;
        for (bucket, &count) in self.counts.iter().enumerate() {
            if count > 0 && (before + count) as f64 >= rank {
                let place = (rank - before as f64) / count as f64;
                let end = bucket as f64 + place;
                let seconds = 2f64.powf(f64::from(FIRST_EXPONENT) + end / EACH_OCTAVE);
                return Some((seconds * NS_A_SECOND).round() as u64);
            }
            before += count;
        }
        // Beyond the last bucket, only its upper bound is known.
        Some((Self::end_s(BUCKETS - 1) * NS_A_SECOND) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A time's bucket, computed from the bounds alone, unlike in the kernel's programs.
    fn bucket_of(ns: u64) -> usize {
        let seconds = ns as f64 / NS_A_SECOND;
        (0..BUCKETS).find(|&bucket| seconds <= Histogram::end_s(bucket)).unwrap()
    }

    fn histogram_of(times: &[u64]) -> Histogram {
        let mut counts = [0; BUCKETS];
        for &time in times {
            counts[bucket_of(time)] += 1;
        }
        Histogram::new(counts, times.len() as u64)
    }

    #[test]
    fn every_fourth_edge_is_a_power_of_two() {
        assert_eq!(Histogram::end_s(BUCKETS - 1), 16.0);
        assert_eq!(Histogram::end_s(3), 2f64.powi(FIRST_EXPONENT + 1));
        assert_eq!(Histogram::end_s(95), 1.0);
    }

    #[test]
    fn nothing_has_no_quantile_and_the_longest_is_known_to_be_long() {
        assert_eq!(Histogram::default().quantile_ns(0.5), None);
        let longer = Histogram::new([0; BUCKETS], 3);
        assert_eq!((longer.count(), longer.quantile_ns(0.5)), (3, Some(16_000_000_000)));
    }

    proptest! {
        #[test]
        fn a_quantile_is_in_the_bucket_of_the_true_one(
            mut times in proptest::collection::vec(100u64..15_000_000_000, 1..200),
            quantile in 0.01f64..1.0,
        ) {
            let found = histogram_of(&times).quantile_ns(quantile).unwrap();
            times.sort_unstable();
            let rank = ((quantile * times.len() as f64).ceil() as usize).max(1);
            let exact = times[rank - 1] as f64;
            let ratio = found as f64 / exact;
            prop_assert!((0.83..=1.20).contains(&ratio), "{found} {exact}");
        }

        #[test]
        fn merged_is_as_counted_together(
            times in proptest::collection::vec(1u64..15_000_000_000, 0..50),
            other in proptest::collection::vec(1u64..15_000_000_000, 0..50),
        ) {
            let mut merged = histogram_of(&times);
            merged.add(&histogram_of(&other));
            prop_assert_eq!(merged, histogram_of(&[times, other].concat()));
        }
    }
}
