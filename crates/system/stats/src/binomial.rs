//! The exact test for the difference of two Poisson counts.

use crate::gamma::beta_part;

/// Two-sided p of `count` successes in `trials`, each with the probability `expected`: twice the
/// smaller tail, at most 1. To compare the counts of two recordings, `trials` is their sum and
/// `expected` the first recording's share of the time.
#[must_use]
pub fn two_sided(count: u64, trials: u64, expected: f64) -> f64 {
    if trials == 0 || !(0.0..=1.0).contains(&expected) {
        return 1.0;
    }
    let count = count.min(trials);
    let (k, n) = (count as f64, trials as f64);
    // P(X <= k) = I_{1-p}(n - k, k + 1), P(X >= k) = I_p(k, n - k + 1).
    let at_most = if count == trials { 1.0 } else { beta_part(1.0 - expected, n - k, k + 1.0) };
    let at_least = if count == 0 { 1.0 } else { beta_part(expected, k, n - k + 1.0) };
    (2.0 * at_most.min(at_least)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums of binomial coefficients, calculated by hand.
    #[test]
    fn small_counts_are_exact() {
        assert!((two_sided(0, 5, 0.5) - 0.0625).abs() < 1e-12);
        assert!((two_sided(1, 6, 0.5) - 14.0 / 64.0).abs() < 1e-12);
        assert!((two_sided(6, 6, 0.25) - 2.0 * 0.25f64.powi(6)).abs() < 1e-12);
        assert!((two_sided(3, 6, 0.5) - 1.0).abs() < 1e-12, "tails that overlap");
        assert_eq!(two_sided(0, 0, 0.5), 1.0);
    }

    #[test]
    fn large_counts_are_fast_and_sane() {
        let p = two_sided(500_000, 1_000_000, 0.5);
        assert!(p > 0.99, "{p}");
        let p = two_sided(502_000, 1_000_000, 0.5);
        // Four standard deviations of 500: 6.3e-5 by the normal distribution.
        assert!((p / 6.33e-5 - 1.0).abs() < 0.02, "{p}");
        assert!(two_sided(0, u64::MAX, 0.5) < 1e-300);
    }
}
