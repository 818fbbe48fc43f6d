//! Block bootstrap: a time slice of a recording depends on the previous slice, so resampling draws
//! blocks of adjacent slices.
//!
//! Circular block bootstrap (Politis and Romano, 1992): slices form a circle, and blocks in a
//! resample can begin anywhere.

use crate::chance::Chance;

/// Blocks for a series with serial dependence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Blocks {
    /// Slices in a block: a power of two.
    pub length: usize,
    /// Factor by which the variance over blocks of this length is too small: the dependence extends
    /// beyond the ends of a block.
    pub missing: f64,
}

impl Blocks {
    /// The length that the series itself requires: Andrews' rule (1991) for the Bartlett kernel, to
    /// which the variance of a block bootstrap converges, and a first-order series. At most an
    /// eighth of the series, so that eight blocks remain to estimate the variance.
    #[must_use]
    pub fn for_series(series: &[f64]) -> Self {
        let n = series.len();
        let r = dependence(series);
        let alpha = 4.0 * r * r / (1.0 - r * r).powi(2);
        let wanted = (1.1447 * (alpha * n as f64).cbrt()).ceil().max(1.0) as usize;
        let max = (n / 8).max(1);
        let length = wanted.min(max).next_power_of_two();
        let length = if length > max { length / 2 } else { length };
        // The Bartlett sum of r^k up to the block's length, over that of all k.
        let l = length as f64;
        let seen = 1.0 - 2.0 * r * (1.0 - r.powf(l)) / (l * (1.0 - r * r));
        Self { length, missing: 1.0 / seen.max(0.05) }
    }
}

/// First-order autocorrelation, from 0 to almost 1.
fn dependence(series: &[f64]) -> f64 {
    let n = series.len();
    let mean = series.iter().sum::<f64>() / n.max(1) as f64;
    let off = |at: usize| series.get(at).map_or(0.0, |value| value - mean);
    let variance: f64 = (0..n).map(|at| off(at).powi(2)).sum();
    let neighbours: f64 = (1..n).map(|at| off(at) * off(at - 1)).sum();
    if variance <= 0.0 {
        return 0.0;
    }
    // The estimate from few slices is too small by about (1 + 4r) / n (Kendall, 1954).
    let raw = neighbours / variance;
    (raw + (1.0 + 4.0 * raw) / n as f64).clamp(0.0, 0.97)
}

/// Resamples of a number of slices: how often each resample contains each slice.
#[derive(Debug)]
pub struct Resamples {
    slices: usize,
    weights: Vec<u16>,
}

impl Resamples {
    /// Draws `resamples` times as many slices as there are, in blocks of `length` neighbours.
    #[must_use]
    pub fn draw(slices: usize, length: usize, resamples: usize, mut chance: Chance) -> Self {
        let mut weights = vec![0u16; slices * resamples];
        let length = length.clamp(1, slices.max(1));
        for weights in weights.chunks_mut(slices.max(1)) {
            let mut drawn = 0;
            while drawn < slices {
                let start = chance.below(slices);
                // The last block is truncated, so that all resamples have the same length.
                for step in 0..length.min(slices - drawn) {
                    if let Some(weight) = weights.get_mut((start + step) % slices) {
                        *weight = weight.saturating_add(1);
                    }
                }
                drawn += length;
            }
        }
        Self { slices, weights }
    }

    /// The ratio of two sums in each resample: `values` by slice, `per` by resample from
    /// [`Resamples::sums`]. Skips resamples in which `per` is not positive.
    #[must_use]
    pub fn ratios(&self, values: &[f64], per: &[f64]) -> Vec<f64> {
        let ratio = |(sum, per): (f64, &f64)| (*per > 0.0).then(|| sum / per);
        self.sums(values).into_iter().zip(per).filter_map(ratio).collect()
    }

    /// The sum of `values`, given by slice, in each resample.
    ///
    /// It is in this crate so that tests run it optimized: it is most of the work of a comparison.
    /// Slices without events are skipped.
    #[must_use]
    pub fn sums(&self, values: &[f64]) -> Vec<f64> {
        let (places, held): (Vec<usize>, Vec<f64>) =
            values.iter().copied().enumerate().filter(|(_, value)| *value != 0.0).unzip();
        if held.len() > values.len() / 4 {
            let sum = |weights: &[u16]| {
                values.iter().zip(weights).map(|(value, weight)| value * f64::from(*weight)).sum()
            };
            return self.each().map(sum).collect();
        }
        let weight = |weights: &[u16], at: usize| weights.get(at).copied().map_or(0.0, f64::from);
        let sum = |weights: &[u16]| {
            places.iter().zip(&held).map(|(at, value)| value * weight(weights, *at)).sum()
        };
        self.each().map(sum).collect()
    }

    /// For each resample: how often it contains each slice.
    pub fn each(&self) -> impl Iterator<Item = &[u16]> {
        self.weights.chunks(self.slices.max(1))
    }
}

/// The sum of counts by slice, weighted with how often a resample contains each slice.
#[must_use]
#[inline(never)]
pub fn weighted_sum(counts: &[u32], weights: &[u16]) -> u64 {
    counts.iter().zip(weights).map(|(count, weight)| u64::from(*count) * u64::from(*weight)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A first-order series with noise from three random bits.
    fn series(n: usize, r: f64, seed: u64) -> Vec<f64> {
        let mut chance = Chance::new(seed);
        let mut value = 0.0;
        (0..n)
            .map(|_| {
                value = r * value + chance.below(1000) as f64 / 1000.0 - 0.5;
                value
            })
            .collect()
    }

    #[test]
    fn blocks_are_as_long_as_the_series_depends_on_itself() {
        let mean = |r: f64| {
            let lengths = (0..200).map(|seed| Blocks::for_series(&series(128, r, seed)).length);
            lengths.sum::<usize>() as f64 / 200.0
        };
        let (none, some, much) = (mean(0.0), mean(0.5), mean(0.9));
        assert!(none < 2.5 && some > 3.0 && much > 10.0, "{none} {some} {much}");
        let plain = Blocks { length: 1, missing: 1.0 };
        assert_eq!(Blocks::for_series(&[3.0; 100]), plain);
        assert_eq!(Blocks::for_series(&[]), plain);
        assert!(
            Blocks::for_series(&series(15, 0.99, 1)).length == 1,
            "too few slices for longer blocks"
        );
    }

    #[test]
    fn every_resample_has_as_many_slices() {
        for length in [1, 3, 8, 100] {
            let resamples = Resamples::draw(20, length, 50, Chance::new(3));
            assert_eq!(resamples.each().count(), 50);
            assert!(resamples.each().all(|resample| resample.iter().sum::<u16>() == 20));
        }
        assert_eq!(Resamples::draw(0, 1, 5, Chance::new(3)).each().count(), 0);
    }

    #[test]
    fn ratios_are_of_slices_as_often_as_they_are_drawn() {
        let resamples = Resamples { slices: 3, weights: vec![1, 1, 1, 0, 0, 3, 2, 1, 0] };
        let per = resamples.sums(&[2.0, 2.0, 0.0]);
        assert_eq!(per, [4.0, 0.0, 6.0]);
        let ratios = resamples.ratios(&[1.0, 2.0, 3.0], &per);
        assert_eq!(ratios, [1.5, 4.0 / 6.0], "the second resample holds nothing to divide by");
        assert_eq!(weighted_sum(&[5, 7, 11], &[2, 0, 1]), 21);
    }

    #[test]
    fn slices_that_hold_nothing_change_no_sum() {
        let resamples = Resamples::draw(64, 4, 200, Chance::new(3));
        let mut values = vec![0.0; 64];
        for held in 0..64 {
            let naive = |weights: &[u16]| -> f64 {
                values.iter().zip(weights).map(|(value, weight)| value * f64::from(*weight)).sum()
            };
            assert_eq!(resamples.sums(&values), resamples.each().map(naive).collect::<Vec<f64>>());
            values[held * 37 % 64] = 0.1 * held as f64 + 1.7;
        }
    }

    /// The variance of a mean, known from theory: noise variance / (1 - r)^2 / n.
    #[test]
    fn the_variance_of_a_mean_is_found_in_spite_of_dependence() {
        let (n, r) = (128, 0.6);
        let truth = 1.0 / 12.0 / (1.0f64 - r).powi(2) / n as f64;
        let variance = |seed| {
            let series = series(n, r, seed);
            let blocks = Blocks::for_series(&series);
            let resamples = Resamples::draw(n, blocks.length, 200, Chance::new(seed));
            let means: Vec<f64> = resamples
                .each()
                .map(|weights| {
                    let sum: f64 =
                        weights.iter().zip(&series).map(|(w, value)| f64::from(*w) * value).sum();
                    sum / n as f64
                })
                .collect();
            crate::standard_deviation(&means).unwrap().powi(2) * blocks.missing
        };
        let found = (0..100).map(variance).sum::<f64>() / 100.0;
        // Without blocks it would be a quarter.
        assert!((0.85..1.15).contains(&(found / truth)), "{}", found / truth);
    }
}
