//! Finds changes of a series' level: E-divisive, with Student's t instead of permutations, so that the same series
//! always gives the same result.
//!
//! The series is divided where the energy distance of both sides is greatest, and so are its parts, recursively. Then
//! the weakest place is removed until each remaining one passes the test against its neighbouring parts. This finds a
//! level that comes and goes, for which the first division alone is weak evidence.

use stats::{mean, student_two_sided};

/// A place where the level changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePoint {
    /// Index of the first value of the new level.
    pub at: usize,
    /// Mean of the values since the previous change.
    pub before: f64,
    /// Mean of the values up to the next change.
    pub after: f64,
    /// Probability of such a difference at any place of a series without a change.
    pub p: f64,
    /// Standard error of the difference of both means.
    pub error: f64,
    /// Degrees of freedom of that error.
    pub freedom: f64,
}

/// Min values of a level: a single value is no level.
pub(crate) const MIN_VALUES: usize = 2;

/// The places where the level of a series changes, in order; each has a p of at most `alpha`.
#[must_use]
pub fn change_points(values: &[f64], alpha: f64) -> Vec<ChangePoint> {
    change_points_that_hold(values, alpha, &|_| true)
}

/// Only those places that `holds` accepts as well. It receives the start of the part before, the place, and the end of
/// the part after.
pub(crate) fn change_points_that_hold(
    values: &[f64],
    alpha: f64,
    holds: &dyn Fn([usize; 3]) -> bool,
) -> Vec<ChangePoint> {
    let mut places = divisions(values);
    loop {
        let mut found = tested(values, &places);
        let ends = [&[0], places.as_slice(), &[values.len()]].concat();
        for (point, end) in found.iter_mut().zip(ends.windows(3)) {
            if let ([from, at, to], true) = (end, point.p <= alpha) {
                point.p = if holds([*from, *at, *to]) { point.p } else { 1.0 };
            }
        }
        let weakest =
            found.iter().enumerate().max_by(|point, other| point.1.p.total_cmp(&other.1.p));
        match weakest {
            Some((at, point)) if point.p > alpha => places.remove(at),
            _ => return found,
        };
    }
}

/// The places that divide the series, its parts, and so on recursively.
fn divisions(values: &[f64]) -> Vec<usize> {
    let (mut places, mut open) = (Vec::new(), vec![(0, values.len())]);
    while let Some((from, to)) = open.pop() {
        if let Some(first) = values.get(from..to).and_then(farthest) {
            let at = from + first;
            places.push(at);
            open.extend([(from, at), (at, to)]);
        }
    }
    places.sort_unstable();
    places
}

/// The size of the first side for which the energy distance of both sides is greatest.
fn farthest(part: &[f64]) -> Option<usize> {
    let all: f64 =
        part.iter().enumerate().map(|(at, value)| distances(*value, part.get(at..))).sum();
    let (mut within_first, mut within_rest) = (0.0, all);
    let mut best: Option<(usize, f64)> = None;
    for (at, value) in part.iter().enumerate() {
        // Moves the value from the second side to the first.
        within_first += distances(*value, part.get(..at));
        within_rest -= distances(*value, part.get(at..));
        let (first, rest) = (at + 1, part.len() - at - 1);
        if first < MIN_VALUES || rest < MIN_VALUES {
            continue;
        }
        let (m, n) = (first as f64, rest as f64);
        let across = all - within_first - within_rest;
        let energy = 2.0 * across / (m * n)
            - 2.0 * within_first / (m * (m - 1.0))
            - 2.0 * within_rest / (n * (n - 1.0));
        let weighted = energy * m * n / (m + n);
        if best.is_none_or(|(_, max)| weighted > max) {
            best = Some((first, weighted));
        }
    }
    best.map(|(first, _)| first)
}

fn distances(value: f64, others: Option<&[f64]>) -> f64 {
    others.unwrap_or_default().iter().map(|other| (value - other).abs()).sum()
}

/// Tests each place with the parts on both sides of it.
fn tested(values: &[f64], places: &[usize]) -> Vec<ChangePoint> {
    let ends = [&[0], places, &[values.len()]].concat();
    let parts: Vec<&[f64]> =
        ends.windows(2).filter_map(|end| values.get(*end.first()?..*end.last()?)).collect();
    let points = places.iter().zip(parts.iter().zip(parts.iter().skip(1)));
    points.filter_map(|(at, (before, after))| point(*at, before, after, values.len())).collect()
}

/// Student's t of two parts with a common deviation, corrected for the length of the series: the best of that many
/// places was chosen.
fn point(at: usize, before: &[f64], after: &[f64], values: usize) -> Option<ChangePoint> {
    let places = (values + 1).saturating_sub(2 * MIN_VALUES).max(1) as f64;
    let (a, b) = (mean(before)?, mean(after)?);
    let squares =
        |part: &[f64], mean: f64| -> f64 { part.iter().map(|value| (value - mean).powi(2)).sum() };
    let (m, n) = (before.len() as f64, after.len() as f64);
    let freedom = m + n - 2.0;
    let variance = (squares(before, a) + squares(after, b)) / freedom;
    let error = (variance * (1.0 / m + 1.0 / n)).sqrt();
    let p = if freedom >= 1.0 && a != b {
        (student_two_sided((b - a) / error, freedom) * places).min(1.0)
    } else {
        1.0
    };
    Some(ChangePoint { at, before: a, after: b, p, error, freedom })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use stats::Chance;

    use super::*;
    use crate::simulate::normal;

    fn noise(seed: u64, values: usize) -> Vec<f64> {
        let mut chance = Chance::of_part(41, seed);
        (0..values).map(|_| normal(&mut chance)).collect()
    }

    fn places(values: &[f64]) -> Vec<usize> {
        change_points(values, 0.05).iter().map(|point| point.at).collect()
    }

    #[test]
    fn levels_are_found_with_their_means() {
        let values = [1.0, 1.1, 0.9, 1.0, 5.0, 5.1, 4.9, 5.0, 1.0, 1.1, 0.9, 1.0];
        let found = change_points(&values, 0.05);
        assert_eq!(found.iter().map(|point| point.at).collect::<Vec<_>>(), [4, 8]);
        for (point, (before, after)) in found.iter().zip([(1.0, 5.0), (5.0, 1.0)]) {
            assert!((point.before - before).abs() < 1e-12 && (point.after - after).abs() < 1e-12);
            assert!(point.p < 1e-6, "{point:?}");
        }
    }

    #[test]
    fn short_and_level_series_have_none() {
        for values in [&[][..], &[1.0], &[1.0, 9.0], &[1.0, 1.0, 9.0], &[3.0; 40]] {
            assert!(places(values).is_empty(), "{values:?}");
        }
        // A single different value is no level.
        let mut values = noise(1, 20);
        values.iter_mut().skip(9).take(1).for_each(|value| *value = 40.0);
        assert!(places(&values).is_empty());
    }

    /// The division is where the energy distance, computed by its definition as a sum over all pairs, is greatest.
    #[test]
    fn the_energy_distance_is_that_of_its_definition() {
        for seed in 0..50 {
            let values = noise(seed, 4 + seed as usize % 20);
            let distance_sum = |side: &[f64], other: &[f64]| -> f64 {
                side.iter().flat_map(|a| other.iter().map(move |b| (a - b).abs())).sum()
            };
            let energy = |at: &usize| {
                let (x, y) = values.split_at(*at);
                let (m, n) = (x.len() as f64, y.len() as f64);
                let apart = 2.0 * distance_sum(x, y) / (m * n);
                (apart
                    - distance_sum(x, x) / (m * (m - 1.0))
                    - distance_sum(y, y) / (n * (n - 1.0)))
                    * m
                    * n
                    / (m + n)
            };
            let max = (2..=values.len() - 2).map(|at| energy(&at)).fold(f64::MIN, f64::max);
            let found = energy(&farthest(&values).unwrap());
            assert!((found - max).abs() < 1e-9, "{found} {max}: {values:?}");
        }
    }

    /// At most a share of alpha of the series without a change are reported as changed.
    #[test]
    fn chance_is_called_a_change_as_often_as_asked_for() {
        for length in [6, 14, 30, 90] {
            let alarms = (0..1000).filter(|seed| !places(&noise(*seed, length)).is_empty()).count();
            assert!(alarms <= 60, "{length} values: {alarms} of 1000");
        }
    }

    /// A step of three deviations, and one that comes and goes.
    #[test]
    fn changes_are_found_where_they_are() {
        let step = |seed: &u64| {
            let mut values = noise(*seed, 30);
            values.iter_mut().skip(20).for_each(|value| *value += 3.0);
            matches!(places(&values)[..], [19..=21])
        };
        let bump = |seed: &u64| {
            let mut values = noise(*seed, 30);
            values.iter_mut().skip(10).take(8).for_each(|value| *value += 3.0);
            matches!(places(&values)[..], [9..=11, 17..=19])
        };
        let (steps, bumps) = ((0..200).filter(step).count(), (0..200).filter(bump).count());
        assert!(steps >= 170 && bumps >= 140, "{steps} and {bumps} of 200");
    }

    proptest! {
        #[test]
        fn shift_scale_and_direction_do_not_matter(
            values in prop::collection::vec(-100i32..100, 0..40),
            shift in -1000i32..1000,
            doublings in -8i32..8,
        ) {
            // Integers and powers of two, so that nothing is rounded.
            let values: Vec<f64> = values.into_iter().map(f64::from).collect();
            let scale = 2f64.powi(doublings);
            let found = places(&values);
            let moved: Vec<f64> = values.iter().map(|value| (value + f64::from(shift)) * scale).collect();
            prop_assert_eq!(&found, &places(&moved));
            let less: Vec<f64> = values.iter().map(|value| -value).collect();
            prop_assert_eq!(&found, &places(&less));
            prop_assert_eq!(change_points(&values, 0.05), change_points(&values, 0.05));
            prop_assert!(found.is_sorted_by(|place, next| place + MIN_VALUES <= *next));
        }

        #[test]
        fn a_great_step_is_found_at_its_place(
            before in prop::collection::vec(-1.0f64..1.0, 4..20),
            after in prop::collection::vec(-1.0f64..1.0, 4..20),
        ) {
            let at = before.len();
            let values: Vec<f64> =
                before.into_iter().chain(after.into_iter().map(|value| value + 100.0)).collect();
            prop_assert!(places(&values).contains(&at));
        }
    }
}
