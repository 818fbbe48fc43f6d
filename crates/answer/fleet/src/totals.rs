//! The totals of all hosts on both sides, with intervals from resampled hosts.

use stats::Chance;

/// A host's contribution to a number of the fleet: by side, numerator and denominator.
pub(crate) type Parts = [Option<(f64, f64)>; 2];

/// Number of resamples: the ends of intervals are known within a tenth of their width.
const RESAMPLES: usize = 400;

/// The ratio of both sides' totals, and its interval with the confidence `1 - alpha`.
///
/// In a `paired` comparison, hosts are drawn with both of their sides, and hosts on one side only are ignored.
/// Otherwise each side is drawn separately.
pub(crate) fn total_ratio(
    hosts: &[Parts],
    paired: bool,
    alpha: f64,
    seed: u64,
) -> Option<(f64, f64, f64)> {
    let both = |host: &&Parts| host.iter().all(Option::is_some);
    let pairs: Vec<&Parts> = hosts.iter().filter(both).collect();
    let side = |at: usize| -> Vec<(f64, f64)> {
        let parts: &mut dyn Iterator<Item = &Parts> =
            if paired { &mut pairs.iter().copied() } else { &mut hosts.iter() };
        parts.filter_map(|host| host.get(at).copied().flatten()).collect()
    };
    let (a, b) = (side(0), side(1));
    let all = |parts: &[(f64, f64)]| quotient(parts.iter().copied());
    let ratio = all(&b)? / all(&a)?;
    let mut chance = Chance::new(seed);
    let mut ratios: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            let drawn_a = draw(a.len(), &mut chance);
            let drawn_b = if paired { drawn_a.clone() } else { draw(b.len(), &mut chance) };
            let quotient_of = |values: &[(f64, f64)], drawn: &[usize]| {
                quotient(drawn.iter().filter_map(|at| values.get(*at).copied()))
            };
            Some(quotient_of(&b, &drawn_b)? / quotient_of(&a, &drawn_a)?)
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    let end = |share: f64| {
        let at = (share * (ratios.len() as f64 - 1.0)).round() as usize;
        ratios.get(at).copied()
    };
    Some((ratio, end(alpha / 2.0)?, end(1.0 - alpha / 2.0)?))
}

fn draw(count: usize, chance: &mut Chance) -> Vec<usize> {
    (0..count).map(|_| chance.below(count)).collect()
}

fn quotient(parts: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let (amount, per) = parts.fold((0.0, 0.0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
    (amount > 0.0 && per > 0.0).then(|| amount / per)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host with a hundred times the exits dominates the total, but is one of ten for the typical host.
    #[test]
    fn a_great_host_counts_as_much_as_it_has() {
        let mut hosts: Vec<Parts> =
            (0..9).map(|_| [Some((10.0, 1.0)), Some((20.0, 1.0))]).collect();
        hosts.push([Some((1000.0, 1.0)), Some((1000.0, 1.0))]);
        let (ratio, low, high) = total_ratio(&hosts, true, 0.05, 1).unwrap();
        assert!((ratio - 1180.0 / 1090.0).abs() < 1e-12);
        assert!(low < 1.05 && (high - 2.0).abs() < 1e-12, "{low} {high}");
        // Without it, all hosts agree.
        hosts.pop();
        assert_eq!(total_ratio(&hosts, true, 0.05, 1), Some((2.0, 2.0, 2.0)));
    }

    #[test]
    fn hosts_on_one_side_count_where_sides_are_apart() {
        let hosts = [[Some((10.0, 1.0)), None], [None, Some((30.0, 2.0))]];
        assert_eq!(total_ratio(&hosts, false, 0.05, 1), Some((1.5, 1.5, 1.5)));
        assert_eq!(total_ratio(&hosts, true, 0.05, 1), None);
    }
}
