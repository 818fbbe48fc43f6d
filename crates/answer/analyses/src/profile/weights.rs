//! Distributes a stratum's time exactly by the weights of its samples, with confidence intervals.

use super::SampledTime;

/// The 97.5th percentile of the normal distribution, for a 95% interval.
const Z: f64 = 1.959_963_984_540_054;

/// Distributes `time_ns` by weights, with the largest remainder method: the shares add up to it. Shares are equal
/// if all weights are 0.
pub(super) fn shares(time_ns: u64, weights: &[u64]) -> Vec<u64> {
    let total: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
    let whole_or_count = if total == 0 { weights.len() as u128 } else { total };
    if whole_or_count == 0 {
        return Vec::new();
    }
    let part =
        |&weight: &u64| u128::from(if total == 0 { 1 } else { weight }) * u128::from(time_ns);
    let parts: Vec<u128> = weights.iter().map(part).collect();
    // Each share is at most `time_ns`.
    let mut shares: Vec<u64> =
        parts.iter().map(|part| u64::try_from(part / whole_or_count).unwrap_or(u64::MAX)).collect();
    let given = shares.iter().fold(0, |sum: u64, &share| sum.saturating_add(share));
    let mut order: Vec<usize> = (0..parts.len()).collect();
    let remainder = |at: &usize| parts.get(*at).map_or(0, |part| part % whole_or_count);
    order.sort_by_key(|at| (std::cmp::Reverse(remainder(at)), *at));
    let missing_ns = usize::try_from(time_ns.saturating_sub(given)).unwrap_or(usize::MAX);
    for at in order.into_iter().take(missing_ns) {
        if let Some(share) = shares.get_mut(at) {
            *share = share.saturating_add(1);
        }
    }
    shares
}

/// Wilson interval of a share from `samples` independent samples.
pub(super) fn interval(share: f64, samples: f64) -> (f64, f64) {
    if samples <= 0.0 {
        return (0.0, 1.0);
    }
    let z2 = Z * Z / samples;
    let middle = (share + z2 / 2.0) / (1.0 + z2);
    let half = Z / (1.0 + z2) * (share * (1.0 - share) / samples + z2 / (4.0 * samples)).sqrt();
    // Rounding must not exclude the share itself.
    ((middle - half).clamp(0.0, share), (middle + half).clamp(share, 1.0))
}

/// A part of a time from `samples` samples, with its confidence interval; `effective` is the effective sample size
/// for the whole time.
pub(super) fn time(time_ns: u64, ns: u64, samples: u64, effective: f64) -> SampledTime {
    let (low, high) = interval(ns as f64 / (time_ns as f64).max(1.0), effective);
    // Rounding to a double's precision must not exclude the time itself.
    let low_ns = ((low * time_ns as f64) as u64).min(ns);
    let high_ns = ((high * time_ns as f64) as u64).max(ns);
    SampledTime { ns, samples, low_ns, high_ns }
}

/// Effective sample size from the sum of weights and the sum of their squares.
pub(super) fn effective(sum: f64, squares: f64) -> f64 {
    if squares > 0.0 { sum * sum / squares } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn shares_add_up(time_ns: u64, weights in prop::collection::vec(any::<u64>(), 1..20)) {
            let shares = shares(time_ns, &weights);
            prop_assert_eq!(shares.iter().map(|&share| u128::from(share)).sum::<u128>(), u128::from(time_ns));
            let total: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
            for (&share, &weight) in shares.iter().zip(&weights) {
                let exact = (u128::from(weight) * u128::from(time_ns)).checked_div(total);
                prop_assert!(exact.is_none_or(|exact| u128::from(share).abs_diff(exact) <= 1));
            }
        }
    }

    /// R 4.2: `prop.test(3, 10, correct = FALSE)$conf.int`.
    #[test]
    fn intervals_are_those_of_r() {
        let (low, high) = interval(0.3, 10.0);
        assert!((low - 0.107_791).abs() < 1e-6 && (high - 0.603_222).abs() < 1e-5, "{low} {high}");
        assert_eq!(interval(0.5, 0.0), (0.0, 1.0));
    }

    #[test]
    fn unequal_weights_say_less() {
        assert!((effective(10.0, 10.0) - 10.0).abs() < 1e-9);
        assert!(effective(10.0, 52.0) < 2.0);
    }
}
