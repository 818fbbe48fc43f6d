//! Blocks of time: what happens in one slice of a recording is not independent of the slice before
//! it, so resampling draws stretches of neighbours.
//!
//! Circular block bootstrap (Politis and Romano, 1992): slices lie on a circle, and a resample is
//! made of blocks that begin anywhere.

use crate::chance::Chance;

/// How long blocks have to be for a series whose neighbours depend on each other as far as the
/// series itself shows: Andrews' rule (1991) for the Bartlett kernel and a series of first order,
/// which the variance of a block bootstrap comes to. A power of two, at most an eighth of the
/// series, so that eight blocks are left to tell the variance from.
#[must_use]
pub fn block_length(series: &[f64]) -> usize {
    let n = series.len();
    let mean = series.iter().sum::<f64>() / n.max(1) as f64;
    let off = |at: usize| series.get(at).map_or(0.0, |value| value - mean);
    let variance: f64 = (0..n).map(|at| off(at).powi(2)).sum();
    let beside: f64 = (1..n).map(|at| off(at) * off(at - 1)).sum();
    if variance <= 0.0 {
        return 1;
    }
    // What is estimated from few slices is too small by about (1 + 4r) / n (Kendall, 1954).
    let raw = beside / variance;
    let r = (raw + (1.0 + 4.0 * raw) / n as f64).clamp(0.0, 0.97);
    let alpha = 4.0 * r * r / (1.0 - r * r).powi(2);
    let length = 1.1447 * (alpha * n as f64).cbrt();
    let most = (n / 8).max(1);
    let length = (length.ceil().max(1.0) as usize).min(most).next_power_of_two();
    if length > most { length / 2 } else { length }
}

/// Resamples of a number of slices: how often each slice is drawn in each of them.
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
                // The last block is cut, so that all resamples are as long.
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

    /// For each resample, how often each slice is in it.
    pub fn each(&self) -> impl Iterator<Item = &[u16]> {
        self.weights.chunks(self.slices.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A series of first order with noise from three bits of chance.
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
            let lengths = (0..200).map(|seed| block_length(&series(128, r, seed)));
            lengths.sum::<usize>() as f64 / 200.0
        };
        let (none, some, much) = (mean(0.0), mean(0.5), mean(0.9));
        assert!(none < 2.5 && some > 3.0 && much > 10.0, "{none} {some} {much}");
        assert_eq!(block_length(&[3.0; 100]), 1);
        assert_eq!(block_length(&[]), 1);
        assert!(block_length(&series(15, 0.99, 1)) == 1, "too few slices for longer blocks");
    }

    #[test]
    fn every_resample_has_as_many_slices() {
        for length in [1, 3, 8, 100] {
            let resamples = Resamples::draw(20, length, 50, Chance::new(3));
            assert_eq!(resamples.each().count(), 50);
            assert!(resamples.each().all(|one| one.iter().sum::<u16>() == 20));
        }
        assert_eq!(Resamples::draw(0, 1, 5, Chance::new(3)).each().count(), 0);
    }

    /// The variance of a mean, known from theory: noise variance / (1 - r)^2 / n.
    #[test]
    fn the_variance_of_a_mean_is_found_in_spite_of_dependence() {
        let (n, r) = (128, 0.6);
        let truth = 1.0 / 12.0 / (1.0f64 - r).powi(2) / n as f64;
        let variance = |seed| {
            let series = series(n, r, seed);
            let length = block_length(&series);
            let resamples = Resamples::draw(n, length, 200, Chance::new(seed));
            let means: Vec<f64> = resamples
                .each()
                .map(|weights| {
                    let sum: f64 =
                        weights.iter().zip(&series).map(|(w, value)| f64::from(*w) * value).sum();
                    sum / n as f64
                })
                .collect();
            crate::standard_deviation(&means).unwrap().powi(2)
        };
        let found = (0..100).map(variance).sum::<f64>() / 100.0;
        // Without blocks it would be a quarter. Block variances are a little small by nature.
        assert!((0.65..1.1).contains(&(found / truth)), "{}", found / truth);
    }
}
