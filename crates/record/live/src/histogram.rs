//! Counts of times in buckets that grow by the fourth root of two: the edges of Prometheus' native
//! histograms of schema 2, in seconds, so that they merge and every fourth is a power of two.

/// How many there are: four to each power of two, from 2^-24 s (60 ns) to 16 s.
pub const BUCKETS: usize = 112;
/// Of the first one's lower end, in seconds.
const FIRST_EXPONENT: i32 = -24;
/// Of the whole: four in each power of two.
const EACH_OCTAVE: f64 = 4.0;
const NS_A_SECOND: f64 = 1e9;

/// A histogram of times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    counts: Box<[u64; BUCKETS]>,
    /// Longer than the last bucket's end.
    longer: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: Box::new([0; BUCKETS]), longer: 0 }
    }
}

impl Histogram {
    /// Of counts as the kernel has them, of this many times in all: those in no bucket are longer.
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

    /// Times counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().copied().fold(self.longer, u64::saturating_add)
    }

    /// The counts, shortest times first; those longer than all buckets are not among them.
    #[must_use]
    pub fn counts(&self) -> &[u64; BUCKETS] {
        &self.counts
    }

    /// The end of a bucket, which belongs to it, in seconds; its beginning is the end of the one before.
    #[must_use]
    pub fn end_s(bucket: usize) -> f64 {
        2f64.powf(f64::from(FIRST_EXPONENT) + (bucket + 1) as f64 / EACH_OCTAVE)
    }

    /// A quantile, as Prometheus has it of native histograms: a place in the bucket that holds it, by its rank
    /// there, on a logarithmic scale. None where nothing was counted. The true one lies in the same bucket,
    /// so it is off by 19% at most.
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
        // Longer than all: the end of the last bucket is the most that is known of it.
        Some((Self::end_s(BUCKETS - 1) * NS_A_SECOND) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As the programs in the kernel find a time's bucket, but by edges alone.
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
