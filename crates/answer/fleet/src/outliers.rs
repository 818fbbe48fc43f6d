//! Outliers: hosts that differ from others of their kind in the change of a number, or in its value.
//!
//! A group of hosts with the same change is no outlier: rows of kinds show it. This module finds single hosts with the
//! generalized extreme studentized deviate test (Rosner, 1983). It removes the farthest hosts one by one, so that
//! several outliers don't hide each other, and decides how many of them are not explained by chance.

use std::collections::BTreeMap;

use stats::{mean, standard_deviation, student_quantile};

use crate::diff::{Grid, GridColumn};

/// An outlying host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Outlier {
    /// Index of the host in the grid.
    pub(crate) host: usize,
    /// Index of the number's column.
    pub(crate) column: usize,
    pub(crate) aspect: OutlierOf,
    /// Its change, or its value, divided by that of the others of its kind.
    pub(crate) times: f64,
    /// Its distance in standard deviations of the others.
    pub(crate) deviations: f64,
    /// Hosts of its kind that have the number.
    pub(crate) peers: usize,
}

/// The quantity in which a host is an outlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutlierOf {
    /// The change of a number on B.
    Change,
    /// The value of a number on B.
    Level,
}

impl OutlierOf {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Change => "change",
            Self::Level => "level",
        }
    }
}

/// Min hosts of a kind: with fewer, the usual variation is unknown.
const MIN_PEERS: usize = 8;

/// One outlier per this many hosts is allowed: more of them are a group.
const PEERS_OF_AN_OUTLIER: usize = 5;

/// All outliers, the farthest first. Among fleets without outliers, at most a share of `alpha` have one.
pub(crate) fn outliers(grid: &Grid, alpha: f64) -> Vec<Outlier> {
    let series: Vec<Series> = series(grid);
    let level = alpha / series.len().max(1) as f64;
    let mut all: Vec<Outlier> = series.iter().flat_map(|series| series.outliers(level)).collect();
    all.sort_by(|outlier, other| other.deviations.abs().total_cmp(&outlier.deviations.abs()));
    all
}

/// Values of a number for the hosts of a kind, as logarithms.
struct Series {
    column: usize,
    aspect: OutlierOf,
    hosts: Vec<(usize, f64)>,
}

fn series(grid: &Grid) -> Vec<Series> {
    let mut kinds: BTreeMap<(&str, bool), Vec<usize>> = BTreeMap::new();
    for (at, host) in grid.hosts.iter().enumerate() {
        kinds.entry((&host.kind, host.is_control)).or_default().push(at);
    }
    let mut all = Vec::new();
    for (column, numbers) in grid.columns.iter().enumerate() {
        for hosts in kinds.values() {
            for aspect in [OutlierOf::Change, OutlierOf::Level] {
                let log = |host: &usize| Some((*host, log(numbers, *host, aspect)?));
                let hosts: Vec<_> = hosts.iter().filter_map(log).collect();
                if hosts.len() >= MIN_PEERS {
                    all.push(Series { column, aspect, hosts });
                }
            }
        }
    }
    all
}

fn log(column: &GridColumn, host: usize, aspect: OutlierOf) -> Option<f64> {
    let [a, b] = column.values.get(host)?.map(|value| value.filter(|value| *value > 0.0));
    match aspect {
        OutlierOf::Change => Some((b? / a?).ln()),
        OutlierOf::Level => Some(b?.ln()),
    }
}

impl Series {
    fn outliers(&self, alpha: f64) -> Vec<Outlier> {
        let logs: Vec<f64> = self.hosts.iter().map(|host| host.1).collect();
        let apart = apart(&logs, alpha);
        let others = |at: &usize| !apart.contains(at);
        let rest: Vec<f64> =
            (0..logs.len()).filter(others).filter_map(|at| logs.get(at).copied()).collect();
        let (Some(middle), Some(deviation)) = (mean(&rest), standard_deviation(&rest)) else {
            return Vec::new();
        };
        let outlier = |at: &usize| {
            let (host, log) = *self.hosts.get(*at)?;
            Some(Outlier {
                host,
                column: self.column,
                aspect: self.aspect,
                times: (log - middle).exp(),
                deviations: (log - middle) / deviation,
                peers: self.hosts.len(),
            })
        };
        apart.iter().filter_map(outlier).collect()
    }
}

/// Indices of outlying values at the level `alpha`.
fn apart(values: &[f64], alpha: f64) -> Vec<usize> {
    let mut rest: Vec<usize> = (0..values.len()).collect();
    let (mut candidates, mut found) = (Vec::new(), 0);
    for _ in 0..values.len() / PEERS_OF_AN_OUTLIER {
        let of_rest: Vec<f64> = rest.iter().filter_map(|at| values.get(*at).copied()).collect();
        let (Some(middle), Some(deviation)) = (mean(&of_rest), standard_deviation(&of_rest)) else {
            break;
        };
        let off = of_rest.iter().map(|value| (value - middle).abs());
        let Some((place, farthest)) =
            off.enumerate().max_by(|entry, other| entry.1.total_cmp(&other.1))
        else {
            break;
        };
        if deviation <= 0.0 {
            break;
        }
        candidates.push(rest.swap_remove(place));
        if farthest / deviation > bound(of_rest.len(), alpha) {
            found = candidates.len();
        }
    }
    candidates.truncate(found);
    candidates
}

/// The distance of the farthest of `count` values, in standard deviations, that is exceeded with probability `alpha`.
fn bound(count: usize, alpha: f64) -> f64 {
    let count = count as f64;
    let t = student_quantile(alpha / count, count - 2.0);
    (count - 1.0) * t / ((count - 2.0 + t * t) * count).sqrt()
}

#[cfg(test)]
mod tests {
    use stats::Chance;

    use super::*;
    use crate::diff::GridHost;
    use crate::metric::Metric;
    use crate::simulate::normal;
    use crate::sums::Key;

    fn drawn(count: usize, chance: &mut Chance) -> Vec<f64> {
        (0..count).map(|_| 0.3 + normal(chance) * 0.05).collect()
    }

    /// Known values of the test, from Rosner's table for alpha = 0.05 (n = 25: 2.82, 50: 3.13, 100: 3.38).
    #[test]
    fn bounds_are_those_of_the_published_table() {
        for (count, known) in [(25, 2.82), (50, 3.13), (100, 3.38)] {
            assert!((bound(count, 0.05) - known).abs() < 0.006, "{count}: {}", bound(count, 0.05));
        }
    }

    #[test]
    fn hosts_that_stand_apart_don_t_hide_each_other() {
        let mut values = drawn(24, &mut Chance::new(4));
        for (at, more) in [(3, 0.6), (7, 0.62), (20, -0.5)] {
            values.iter_mut().skip(at).take(1).for_each(|value| *value += more);
        }
        let mut found = apart(&values, 0.001);
        found.sort_unstable();
        assert_eq!(found, [3, 7, 20]);
        assert!(apart(&[0.5; 20], 0.05).is_empty() && apart(&[], 0.05).is_empty());
    }

    #[test]
    fn of_hosts_that_are_alike_seldom_one_stands_apart() {
        for count in [8, 12, 50] {
            let is_one =
                |seed: &u64| !apart(&drawn(count, &mut Chance::new(*seed)), 0.05).is_empty();
            let fleets = (0..1000).filter(is_one).count();
            assert!((15..=75).contains(&fleets), "{fleets} of 1000 with {count} hosts");
        }
    }

    /// Twelve hosts of a kind that all changed are no outliers; the single changed host of the other kind is.
    #[test]
    fn a_change_of_a_kind_is_no_outlier() {
        let mut chance = Chance::new(9);
        let host = |at: usize| GridHost {
            name: format!("h{at}"),
            kind: (at % 2).to_string(),
            is_control: false,
            sessions: Default::default(),
        };
        let mut values = |at: usize| {
            let more = if at % 2 == 1 || at == 6 { 1.5 } else { 1.0 };
            [Some(100.0), Some(100.0 * more * (normal(&mut chance) * 0.03).exp())]
        };
        let column = GridColumn {
            key: Key::default(),
            metric: Metric::Mean,
            values: (0..24).map(&mut values).collect(),
        };
        let grid = Grid { hosts: (0..24).map(host).collect(), columns: vec![column] };
        let found = outliers(&grid, 0.05);
        assert!(found.iter().all(|outlier| outlier.host == 6 && outlier.peers == 12), "{found:?}");
        let change = found.iter().find(|outlier| outlier.aspect == OutlierOf::Change).unwrap();
        assert!((1.3..1.7).contains(&change.times) && change.deviations > 6.0, "{change:?}");
    }
}
