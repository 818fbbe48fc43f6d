//! Corrects p-values for multiple comparisons.

/// Holm's adjustment bounds the probability that any comparison is falsely called different.
/// Results are in the order of `p`.
#[must_use]
pub fn holm(p: &[f64]) -> Vec<f64> {
    let count = p.len() as f64;
    let mut worst = 0.0f64;
    adjusted(p, ascending(p), |rank, p| {
        worst = worst.max((count - rank as f64) * p);
        worst
    })
}

/// Benjamini and Hochberg's adjustment bounds the average share of false results among the
/// comparisons called different. Results are in the order of `p`.
#[must_use]
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let count = p.len() as f64;
    let mut best = 1.0f64;
    let mut order = ascending(p);
    order.reverse();
    adjusted(p, order, |rank, p| {
        best = best.min(count / (count - rank as f64) * p);
        best
    })
}

fn ascending(p: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    let value = |at: usize| p.get(at).copied().unwrap_or(1.0);
    order.sort_by(|&first, &other| value(first).total_cmp(&value(other)).then(first.cmp(&other)));
    order
}

fn adjusted(p: &[f64], order: Vec<usize>, mut step: impl FnMut(usize, f64) -> f64) -> Vec<f64> {
    let mut out = vec![1.0; p.len()];
    for (rank, at) in order.into_iter().enumerate() {
        if let (Some(slot), Some(p)) = (out.get_mut(at), p.get(at)) {
            *slot = step(rank, *p).min(1.0);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const P: [f64; 7] = [0.01, 0.04, 0.03, 0.005, 0.6, 0.0001, 0.04];

    fn close(got: &[f64], known: &[f64]) {
        let off = got.iter().zip(known).map(|(got, known)| (got - known).abs()).fold(0.0, f64::max);
        assert!(off < 1e-12 && got.len() == known.len(), "{got:?}, known {known:?}");
    }

    /// R: `p.adjust(c(.01, .04, .03, .005, .6, .0001, .04), "holm")`; by hand: 7 × 0.0001,
    /// 6 × 0.005, 5 × 0.01, 4 × 0.03, then 3 × 0.04 twice, and 0.6.
    #[test]
    fn holm_is_that_of_the_paper() {
        close(&holm(&P), &[0.05, 0.12, 0.12, 0.03, 0.6, 0.0007, 0.12]);
    }

    /// scipy 1.17: `scipy.stats.false_discovery_control(p, method="bh")`.
    #[test]
    fn benjamini_hochberg_is_that_of_scipy() {
        close(
            &benjamini_hochberg(&P),
            &[
                0.023333333333333334,
                0.04666666666666667,
                0.04666666666666667,
                0.0175,
                0.6,
                0.0007,
                0.04666666666666667,
            ],
        );
    }

    proptest! {
        #[test]
        fn adjusted_values_keep_order_and_are_no_smaller(p in prop::collection::vec(0.0f64..=1.0, 0..40)) {
            for adjust in [holm, benjamini_hochberg] {
                let adjusted = adjust(&p);
                for (index, &raw) in p.iter().enumerate() {
                    prop_assert!(adjusted[index] >= raw - 1e-15 && adjusted[index] <= 1.0);
                    for (other, &raw_other) in p.iter().enumerate() {
                        prop_assert!(raw > raw_other || adjusted[index] <= adjusted[other] + 1e-15);
                    }
                }
            }
            let strict = holm(&p);
            let lax = benjamini_hochberg(&p);
            prop_assert!(strict.iter().zip(&lax).all(|(strict, lax)| strict >= &(lax - 1e-12)));
        }
    }
}
