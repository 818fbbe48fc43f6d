//! Student's t distribution.

use crate::gamma::beta_part;

/// The probability that |t| is at least this large, with `df` degrees of freedom.
#[must_use]
pub fn two_sided(t: f64, df: f64) -> f64 {
    if t.is_infinite() {
        return 0.0;
    }
    beta_part(df / (df + t * t), df / 2.0, 0.5).clamp(0.0, 1.0)
}

/// The t that |t| exceeds with probability `alpha`: half the width of the interval.
#[must_use]
pub fn quantile(alpha: f64, df: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while two_sided(high, df) > alpha && high < 1e12 {
        high *= 2.0;
    }
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if two_sided(middle, df) > alpha {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    /// scipy 1.17: `2 * scipy.stats.t.sf(t, df)`.
    #[test]
    fn tails_are_those_of_scipy() {
        for (t, df, known) in [
            (2.0, 1.0, 0.2951672353008665),
            (12.706, 1.0, 0.05000080235813319),
            (4.5, 7.3, 0.0025193737332427956),
            (1.96, 1000000.0, 0.04999606758526985),
            (9.0, 63.0, 6.474996232003075e-13),
        ] {
            let got = two_sided(t, df);
            assert!((got / known - 1.0).abs() < 1e-9, "{t} {df}: {got}, scipy {known}");
        }
        assert_eq!(two_sided(f64::INFINITY, 3.0), 0.0);
        assert!((two_sided(0.0, 3.0) - 1.0).abs() < 1e-12);
    }

    /// Printed tables, and scipy 1.17: `scipy.stats.t.ppf(1 - alpha / 2, df)`.
    #[test]
    fn quantiles_are_those_of_tables() {
        for (alpha, df, known) in [
            (0.05, 1.0, 12.706204736174694),
            (0.05, 9.0, 2.262157162798205),
            (0.01, 2.5, 7.163728138948783),
            (0.05, 100000.0, 1.9599877075346095),
            (0.001, 30.0, 3.6459586350420627),
        ] {
            let got = quantile(alpha, df);
            assert!((got / known - 1.0).abs() < 1e-9, "{alpha} {df}: {got}, scipy {known}");
        }
    }
}
