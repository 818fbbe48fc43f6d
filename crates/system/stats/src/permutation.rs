//! Exact permutation tests for few runs.

use crate::chance::Chance;

/// The result of a permutation test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Permutation {
    /// Share of the permutations in which the means differ at least as much as observed.
    pub p: f64,
    /// The smallest p that this number of values can give.
    pub least: f64,
}

/// Maximum number of permutations that are all evaluated; with more, this many random ones are used.
const MAX_WAYS: u64 = 20_000;

/// Compares the means of two groups of runs; `None` if a group is empty.
#[must_use]
pub fn permute(a: &[f64], b: &[f64], seed: u64) -> Option<Permutation> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let all: Vec<f64> = a.iter().chain(b).copied().collect();
    let total: f64 = all.iter().sum();
    let (n, k) = (all.len() as f64, a.len() as f64);
    // The expected sum of the first group under equal means.
    let expected = total * k / n;
    let size = all.iter().map(|value| value.abs()).sum::<f64>();
    // The order of summation changes the last digits.
    let observed = (a.iter().sum::<f64>() - expected).abs() - size * 1e-12;
    let extreme = |sum: f64| (sum - expected).abs() >= observed;
    let ways = ways(all.len() as u64, a.len() as u64);
    // Groups of equal size can be exchanged.
    let mirrored = if a.len() == b.len() { 2.0 } else { 1.0 };
    Some(match ways {
        Some(ways) => {
            let mut found = 0u64;
            each_choice(&all, a.len(), 0.0, &mut |sum| found += u64::from(extreme(sum)));
            Permutation { p: found as f64 / ways as f64, least: mirrored / ways as f64 }
        }
        None => {
            let found = sampled(all, a.len(), seed, extreme);
            let tried = MAX_WAYS as f64 + 1.0;
            Permutation { p: (found as f64 + 1.0) / tried, least: 1.0 / tried }
        }
    })
}

/// Tests whether changes have a common sign: how often random signs give at least the same sum.
/// `None` without changes.
#[must_use]
pub fn flip_signs(changes: &[f64], seed: u64) -> Option<Permutation> {
    if changes.is_empty() {
        return None;
    }
    let size = changes.iter().map(|change| change.abs()).sum::<f64>();
    let observed = changes.iter().sum::<f64>().abs() - size * 1e-12;
    let ways = u32::try_from(changes.len()).ok().and_then(|count| 1u64.checked_shl(count));
    Some(match ways.filter(|ways| *ways <= MAX_WAYS) {
        Some(ways) => {
            let signed = |signs: u64| -> f64 {
                let sign = |at: usize| if signs >> at & 1 == 1 { -1.0 } else { 1.0 };
                changes.iter().enumerate().map(|(at, change)| sign(at) * change).sum()
            };
            let found = (0..ways).filter(|signs| signed(*signs).abs() >= observed).count();
            Permutation { p: found as f64 / ways as f64, least: 2.0 / ways as f64 }
        }
        None => {
            let mut chance = Chance::new(seed);
            let mut flipped = || -> f64 {
                changes.iter().map(|change| if chance.coin() { -change } else { *change }).sum()
            };
            let found = (0..MAX_WAYS).filter(|_| flipped().abs() >= observed).count();
            let tried = MAX_WAYS as f64 + 1.0;
            Permutation { p: (found as f64 + 1.0) / tried, least: 1.0 / tried }
        }
    })
}

/// The number of ways to choose `k` of `n`; `None` if there are too many to try.
fn ways(n: u64, k: u64) -> Option<u64> {
    let mut ways = 1u64;
    for step in 1..=k.min(n - k) {
        ways = ways * (n - step + 1) / step;
        if ways > MAX_WAYS {
            return None;
        }
    }
    Some(ways)
}

/// Emits the sum of every choice of `k` values.
fn each_choice(values: &[f64], k: usize, sum: f64, emit: &mut impl FnMut(f64)) {
    if k == 0 {
        return emit(sum);
    }
    for (at, value) in values.iter().enumerate().take((values.len() + 1).saturating_sub(k)) {
        each_choice(values.get(at + 1..).unwrap_or(&[]), k - 1, sum + value, emit);
    }
}

fn sampled(mut all: Vec<f64>, k: usize, seed: u64, extreme: impl Fn(f64) -> bool) -> u64 {
    let mut chance = Chance::new(seed);
    let draw = |_| {
        chance.shuffle(&mut all);
        u64::from(extreme(all.iter().take(k).sum()))
    };
    (0..MAX_WAYS).map(draw).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_against_three_is_a_tenth_at_best() {
        let test = permute(&[1.0, 2.0, 3.0], &[10.0, 11.0, 12.0], 1).unwrap();
        assert_eq!(test, Permutation { p: 0.1, least: 0.1 });
        let four = permute(&[1.0, 2.0, 3.0, 4.0], &[10.0, 11.0, 12.0, 13.0], 1).unwrap();
        assert!((four.p - 2.0 / 70.0).abs() < 1e-12);
        let uneven = permute(&[1.0], &[10.0, 11.0, 12.0], 1).unwrap();
        assert!((uneven.least - 0.25).abs() < 1e-12);
    }

    /// scipy 1.17: `permutation_test((a, b), lambda x, y: abs(np.mean(x) - np.mean(y)), alternative="greater",
    /// n_resamples=np.inf)`.
    #[test]
    fn overlapping_groups_are_as_scipy_has_them() {
        let a = [470.0, 468.5, 473.2, 471.1, 469.0];
        let b = [472.0, 475.5, 470.4, 478.1];
        let test = permute(&a, &b, 1).unwrap();
        assert!((test.p - 0.07936507936507936).abs() < 1e-12, "{}", test.p);
    }

    #[test]
    fn equal_values_say_nothing() {
        assert_eq!(permute(&[0.1; 4], &[0.1; 5], 1).unwrap().p, 1.0);
        assert!(permute(&[], &[1.0], 1).is_none());
    }

    /// By hand: of 1, 2, 3 and -0.5, the sum is 5.5 or 6.5 with two of the 16 choices of signs, and their
    /// negatives with two.
    #[test]
    fn signs_are_flipped_in_all_ways() {
        let test = flip_signs(&[1.0, 2.0, 3.0, -0.5], 1).unwrap();
        assert_eq!(test, Permutation { p: 4.0 / 16.0, least: 2.0 / 16.0 });
        assert_eq!(flip_signs(&[0.0; 5], 1).unwrap().p, 1.0);
        assert!(flip_signs(&[], 1).is_none());
        let many: Vec<f64> = (0..100).map(|at| f64::from(at) - 45.0).collect();
        let found = flip_signs(&many, 7).unwrap();
        // Student's t of the same is 1.55, p 0.124.
        assert!((0.11..0.14).contains(&found.p), "{}", found.p);
        assert_eq!(flip_signs(&many, 7), Some(found));
    }

    #[test]
    fn many_runs_are_sampled_and_come_again() {
        let a: Vec<f64> = (0..12).map(f64::from).collect();
        let b: Vec<f64> = (3..15).map(f64::from).collect();
        let (first, again) = (permute(&a, &b, 9).unwrap(), permute(&a, &b, 9).unwrap());
        assert_eq!(first, again);
        // Student's t of the same is 2.04, p 0.054.
        assert!((0.03..0.08).contains(&first.p), "{}", first.p);
        assert!(permute(&a, &a, 9).unwrap().p > 0.99);
    }
}
