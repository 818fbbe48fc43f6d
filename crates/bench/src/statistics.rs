//! Means of paired runs with their confidence, and an order that is left to chance.

use serde::Serialize;

/// A mean, and the interval that holds the true one with 95% confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Lower end of the interval; none when there is but one value.
    pub low: Option<f64>,
    /// Upper end of the interval; none when there is but one value.
    pub high: Option<f64>,
    /// How many values it is made of.
    pub n: usize,
}

/// Quantiles 0.975 of Student's t for 1 to 30 degrees of freedom.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

impl Estimate {
    /// Of values that each come from a pair of runs: Student's t of the values' mean. None of none.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = values.len();
        if n == 0 || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let count = count(n);
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let half = (n > 1).then(|| {
            // Beyond the table, the quantile is within 0.4% of this.
            let t = T.get(n - 2).copied().unwrap_or(1.96 + 2.5 / count);
            t * (squares / (count - 1.0) / count).sqrt()
        });
        Some(Self {
            mean,
            low: half.map(|half| mean - half),
            high: half.map(|half| mean + half),
            n,
        })
    }

    /// The same with each value changed by a function that is linear and falls or rises.
    #[must_use]
    pub fn map(self, change: impl Fn(f64) -> f64) -> Self {
        let (low, high) = (self.low.map(&change), self.high.map(&change));
        let (low, high) = if low > high { (high, low) } else { (low, high) };
        Self { mean: change(self.mean), low, high, n: self.n }
    }
}

#[allow(clippy::cast_precision_loss, reason = "runs are few")]
fn count(n: usize) -> f64 {
    n as f64
}

/// Chance that can be had again from its seed (SplitMix64).
#[derive(Clone, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn coin(&mut self) -> bool {
        self.next() & 1 == 1
    }

    /// Puts things into an order in which each comes anywhere with the same chance.
    pub(crate) fn shuffle<T>(&mut self, things: &mut [T]) {
        for last in (1..things.len()).rev() {
            let other = self.next() % (last as u64 + 1);
            things.swap(last, usize::try_from(other).unwrap_or(last));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sleep data of Student's own paper (1908): extra hours by drug 2 over drug 1, ten patients.
    /// R: t.test(extra ~ group, paired = TRUE) gives mean 1.58, interval 0.7001142 to 2.4598858.
    #[test]
    fn students_own_pairs() {
        let first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let pairs: Vec<f64> = first.iter().zip(second).map(|(one, other)| other - one).collect();
        let estimate = Estimate::of(&pairs).unwrap();
        assert!((estimate.mean - 1.58).abs() < 1e-9);
        assert!((estimate.low.unwrap() - 0.700_114).abs() < 2e-4);
        assert!((estimate.high.unwrap() - 2.459_886).abs() < 2e-4);
    }

    #[test]
    fn one_value_has_no_interval_and_none_no_mean() {
        let one = Estimate::of(&[0.97]).unwrap();
        assert_eq!((one.mean, one.low, one.high, one.n), (0.97, None, None, 1));
        assert_eq!(Estimate::of(&[]), None);
        assert_eq!(Estimate::of(&[f64::NAN, 1.0]), None);
    }

    #[test]
    fn equal_pairs_have_an_interval_of_no_width() {
        let same = Estimate::of(&[0.5; 4]).unwrap();
        assert_eq!((same.low, same.high), (Some(0.5), Some(0.5)));
    }

    #[test]
    fn a_falling_change_swaps_the_ends() {
        let ratio = Estimate { mean: 0.9, low: Some(0.8), high: Some(1.0), n: 3 };
        let overhead = ratio.map(|ratio| (1.0 - ratio) * 100.0);
        assert!((overhead.mean - 10.0).abs() < 1e-9);
        assert!(overhead.low.unwrap().abs() < 1e-9);
        assert!((overhead.high.unwrap() - 20.0).abs() < 1e-9);
    }

    /// The first numbers of SplitMix64 from seed 1234567, as its author's C program prints them.
    #[test]
    fn chance_is_splitmix64() {
        let mut chance = Chance::new(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| chance.next()).collect();
        let known =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(first, known);
    }

    #[test]
    fn a_shuffle_keeps_all_and_comes_again_from_its_seed() {
        let shuffled = |seed| {
            let mut all: Vec<u32> = (0..20).collect();
            Chance::new(seed).shuffle(&mut all);
            all
        };
        assert_eq!(shuffled(7), shuffled(7));
        assert_ne!(shuffled(7), shuffled(8));
        let mut sorted = shuffled(7);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..20).collect::<Vec<_>>());
    }
}
