//! Compares two things that were measured side by side in pairs.

use crate::comparison::{Comparison, Scale};
use crate::estimate::{mean, standard_deviation};
use crate::student;

/// Student's paired test, for pairs measured close together: of the logarithms of their ratios if
/// all numbers are positive, otherwise of their differences. Slow changes, such as an increasing
/// load of the machine, affect both sides of a pair equally. `None` for fewer than two pairs.
#[must_use]
pub fn compare_pairs(pairs: &[(f64, f64)], alpha: f64) -> Option<Comparison> {
    let is_ratio = pairs.iter().all(|(a, b)| *a > 0.0 && *b > 0.0);
    let change = |(a, b): &(f64, f64)| if is_ratio { (b / a).ln() } else { b - a };
    let changes: Vec<f64> = pairs.iter().map(change).collect();
    let (mean, deviation) = (mean(&changes)?, standard_deviation(&changes)?);
    let (count, freedom) = (changes.len() as f64, changes.len() as f64 - 1.0);
    let error = deviation / count.sqrt();
    let (p, half) = if error > 0.0 {
        (student::two_sided(mean / error, freedom), student::quantile(alpha, freedom) * error)
    } else {
        (if mean == 0.0 { 1.0 } else { 0.0 }, 0.0)
    };
    let shown = |value: f64| if is_ratio { value.exp() } else { value };
    let scale = if is_ratio { Scale::Ratio } else { Scale::Difference };
    Some(Comparison {
        scale,
        change: shown(mean),
        low: shown(mean - half),
        high: shown(mean + half),
        p,
    })
}

/// The average growth from one measurement to the next, and the probability of an equal or larger
/// growth if there is none. `None` for fewer than three values.
#[must_use]
pub fn trend(values: &[f64]) -> Option<(f64, f64)> {
    let count = values.len() as f64;
    let freedom = count - 2.0;
    let middle = (count - 1.0) / 2.0;
    let mean = mean(values).filter(|_| freedom > 0.0)?;
    let each = || values.iter().enumerate().map(|(at, value)| (at as f64 - middle, value - mean));
    let squares: f64 = each().map(|(at, _)| at * at).sum();
    let slope = each().map(|(at, value)| at * value).sum::<f64>() / squares;
    let rest: f64 = each().map(|(at, value)| (value - slope * at).powi(2)).sum();
    let error = (rest / freedom / squares).sqrt();
    let p = if error > 0.0 {
        student::two_sided(slope / error, freedom)
    } else {
        f64::from(u8::from(slope == 0.0))
    };
    Some((slope, p))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: changes ln 1.1, ln 1.2, ln 1.0, ln 1.1, so t = 2.50394 with 3 degrees of freedom, whose tail has a
    /// closed form.
    #[test]
    fn pairs_are_compared_by_their_ratios() {
        let found = compare_pairs(&[(10.0, 11.0), (20.0, 24.0), (5.0, 5.0), (1.0, 1.1)], 0.05);
        let found = found.unwrap();
        let changes = [1.1_f64.ln(), 1.2_f64.ln(), 0.0, 1.1_f64.ln()];
        let mean = changes.iter().sum::<f64>() / 4.0;
        assert_eq!(found.scale, Scale::Ratio);
        assert!((found.change - mean.exp()).abs() < 1e-12);
        assert!((found.p - 0.087_402_616).abs() < 1e-8, "{found:?}");
        assert!(found.low < 1.0 && found.high > 1.2, "{found:?}");
    }

    #[test]
    fn differences_are_taken_where_there_are_zeros() {
        let found = compare_pairs(&[(0.0, 1.0), (1.0, 2.0), (2.0, 3.5)], 0.05).unwrap();
        assert_eq!(found.scale, Scale::Difference);
        assert!((found.change - 3.5 / 3.0).abs() < 1e-12);
        assert_eq!(compare_pairs(&[(1.0, 2.0)], 0.05), None);
        let same = compare_pairs(&[(1.0, 1.0), (2.0, 2.0)], 0.05).unwrap();
        assert_eq!((same.change, same.p), (1.0, 1.0));
    }

    #[test]
    fn a_trend_is_found() {
        let (slope, p) = trend(&[1.0, 2.1, 2.9, 4.0, 5.1]).unwrap();
        assert!((slope - 1.01).abs() < 0.01 && p < 1e-3, "{slope} {p}");
        let (slope, p) = trend(&[1.0, -1.0, 1.0, -1.0, 1.0]).unwrap();
        assert!(slope.abs() < 1e-12 && p > 0.99, "{slope} {p}");
        assert_eq!(trend(&[1.0, 2.0]), None);
    }
}
