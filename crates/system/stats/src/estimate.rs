//! Means of few values, with their confidence intervals.

use serde::Serialize;

use crate::student;

/// A mean, and the interval that contains the true mean with 95% confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    pub mean: f64,
    /// Lower end of the interval; `None` for a single value.
    pub low: Option<f64>,
    /// Upper end of the interval; `None` for a single value.
    pub high: Option<f64>,
    /// Number of values.
    pub n: usize,
}

/// The arithmetic mean; `None` without values.
#[must_use]
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The median; reorders the values. `None` without values.
#[must_use]
pub fn median(values: &mut [f64]) -> Option<f64> {
    let (count, middle) = (values.len(), values.len() / 2);
    if count == 0 {
        return None;
    }
    let (lower, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let below = lower.iter().copied().max_by(f64::total_cmp).filter(|_| count % 2 == 0);
    Some(below.map_or(*upper, |below| (below + *upper) / 2.0))
}

/// The sample standard deviation; `None` for fewer than two values.
#[must_use]
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values).filter(|_| values.len() > 1)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

impl Estimate {
    /// Student's t interval of the mean of values that each come from a pair of runs; `None`
    /// without values.
    #[must_use]
    pub fn from_values(values: &[f64]) -> Option<Self> {
        let mean = mean(values).filter(|_| values.iter().all(|value| value.is_finite()))?;
        let n = values.len();
        let half = standard_deviation(values).map(|sd| {
            let t = student::quantile(0.05, n as f64 - 1.0);
            t * sd / (n as f64).sqrt()
        });
        Some(Self {
            mean,
            low: half.map(|half| mean - half),
            high: half.map(|half| mean + half),
            n,
        })
    }

    /// The estimate with a linear function applied to each value.
    #[must_use]
    pub fn map(self, change: impl Fn(f64) -> f64) -> Self {
        let (low, high) = (self.low.map(&change), self.high.map(&change));
        let (low, high) = if low > high { (high, low) } else { (low, high) };
        Self { mean: change(self.mean), low, high, n: self.n }
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
        let pairs: Vec<f64> =
            first.iter().zip(second).map(|(first, other)| other - first).collect();
        let estimate = Estimate::from_values(&pairs).unwrap();
        assert!((estimate.mean - 1.58).abs() < 1e-9);
        assert!((estimate.low.unwrap() - 0.700_114_2).abs() < 1e-6);
        assert!((estimate.high.unwrap() - 2.459_885_8).abs() < 1e-6);
    }

    #[test]
    fn one_value_has_no_interval_and_none_no_mean() {
        let estimate = Estimate::from_values(&[0.97]).unwrap();
        assert_eq!((estimate.mean, estimate.low, estimate.high, estimate.n), (0.97, None, None, 1));
        assert_eq!(Estimate::from_values(&[]), None);
        assert_eq!(Estimate::from_values(&[f64::NAN, 1.0]), None);
    }

    #[test]
    fn equal_pairs_have_an_interval_of_no_width() {
        let same = Estimate::from_values(&[0.5; 4]).unwrap();
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
}
