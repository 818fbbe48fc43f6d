//! Compares two numbers with standard errors.

use crate::estimate::{mean, standard_deviation};
use crate::student;

/// The statistics of one side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Side {
    /// The number.
    pub value: f64,
    /// Its standard error.
    pub error: f64,
    /// Degrees of freedom of the error.
    pub freedom: f64,
}

impl Side {
    /// The mean of runs with its standard error; `None` without runs.
    #[must_use]
    pub fn of_runs(values: &[f64]) -> Option<Self> {
        let runs = values.len() as f64;
        let error = standard_deviation(values).unwrap_or(0.0) / runs.sqrt();
        Some(Self { value: mean(values)?, error, freedom: runs - 1.0 })
    }
}

/// The scale of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// The ratio of b to a.
    Ratio,
    /// The difference of b and a, if one of them is zero.
    Difference,
}

/// How b relates to a.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// The scale.
    pub scale: Scale,
    /// The ratio or difference.
    pub change: f64,
    /// Lower end of the interval that contains the true value with confidence `1 - alpha`.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Probability of an equal or larger change if there is none.
    pub p: f64,
}

/// Welch's test: of the logarithms if both sides are positive, otherwise of the values. The
/// interval excludes "no change" exactly if `p` is less than `alpha`.
#[must_use]
pub fn compare(a: &Side, b: &Side, alpha: f64) -> Comparison {
    let ratio = a.value > 0.0 && b.value > 0.0;
    // To first order, the error of a logarithm is the relative error.
    let relative = |side: &Side| side.error / if ratio { side.value } else { 1.0 };
    let (a_error, b_error) = (relative(a), relative(b));
    let change = if ratio { (b.value / a.value).ln() } else { b.value - a.value };
    let (square_a, square_b) = (a_error.powi(2), b_error.powi(2));
    let error = (square_a + square_b).sqrt();
    let (p, half) = if error > 0.0 {
        let parts = square_a.powi(2) / a.freedom + square_b.powi(2) / b.freedom;
        let freedom = ((square_a + square_b).powi(2) / parts).max(1.0);
        (student::two_sided(change / error, freedom), student::quantile(alpha, freedom) * error)
    } else {
        (if change == 0.0 { 1.0 } else { 0.0 }, 0.0)
    };
    let shown = |value: f64| if ratio { value.exp() } else { value };
    Comparison {
        scale: if ratio { Scale::Ratio } else { Scale::Difference },
        change: shown(change),
        low: shown(change - half),
        high: shown(change + half),
        p,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// scipy 1.17: `ttest_ind(a, b, equal_var=False)` and its `confidence_interval()`, of
    /// a = 470.0, 468.5, 473.2, 471.1, 469.0 and b = 472.0, 475.5, 470.4, 478.1, both less 470.36
    /// so that the difference is taken.
    #[test]
    fn differences_are_those_of_welch() {
        let side = |values: &[f64]| Side::of_runs(values).unwrap();
        let a = side(&[470.0, 468.5, 473.2, 471.1, 469.0].map(|value| value - 470.36));
        let b = side(&[472.0, 475.5, 470.4, 478.1].map(|value| value - 470.36));
        let found = compare(&Side { value: 0.0, ..a }, &b, 0.05);
        assert_eq!(found.scale, Scale::Difference);
        let (p, low, high) = (0.12521963577020803, -1.5222016995109495, 8.802201699510922);
        assert!((found.p / p - 1.0).abs() < 1e-9, "{found:?}");
        assert!((found.low - low).abs() < 1e-9 && (found.high - high).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn ratios_have_intervals_around_them() {
        let side = |value, error| Side { value, error, freedom: 20.0 };
        let found = compare(&side(470.0, 2.0), &side(488.0, 2.0), 0.05);
        assert!((found.change - 1.0383).abs() < 1e-4);
        assert!(found.low > 1.02 && found.low < found.change && found.high > found.change);
        assert!(found.p < 0.001);
        let same = compare(&side(470.0, 2.0), &side(470.0, 2.0), 0.05);
        assert_eq!((same.change, same.p), (1.0, 1.0));
        assert!((same.low * same.high - 1.0).abs() < 1e-12);
    }

    #[test]
    fn numbers_without_error_are_equal_or_not() {
        let exact = |value| Side { value, error: 0.0, freedom: 5.0 };
        let found = compare(&exact(2.0), &exact(3.0), 0.05);
        assert_eq!((found.p, found.change, found.low), (0.0, 1.5, found.high));
        assert_eq!(compare(&exact(2.0), &exact(2.0), 0.05).p, 1.0);
        assert_eq!(compare(&exact(0.0), &exact(0.0), 0.05).p, 1.0);
    }
}
