//! Finds when the numbers of a fleet changed: the day on which a level changes, by how much, and on which hosts.

#[cfg(test)]
mod chance;

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use crate::lake::store::{Storage, counted};
use stats::{benjamini_hochberg, compare_pairs, student_quantile};

use crate::change_points::{ChangePoint, MIN_VALUES, change_points_that_hold};
use crate::day_levels::{DayLevels, HostStep};
use crate::host_days::{Choice, HostDays};
use crate::level_change::{Bounds, Carriers, LevelChange, host_changes};
use crate::metric::Metric;
use crate::selection::Selection;
use crate::series::Series;
use crate::sessions::Sessions;
use crate::since_findings::{count_all_hosts, name_kinds, note_moves};
use crate::sums::Key;

/// The question of a search.
#[derive(Clone, Debug)]
pub struct SinceQuestion {
    /// Only sessions for which this holds.
    pub selection: Option<Selection>,
    /// Columns of `sessions` or labels that define kinds of hosts.
    pub strata: Vec<String>,
    /// Numbers to look at.
    pub metrics: Vec<Metric>,
    /// Days per value: 7 if weeks have a rhythm.
    pub step_days: u32,
    /// Sessions that lost a greater share of their events are left out.
    pub most_lost: f64,
    /// Accepted share of false positives among the series reported as changed.
    pub alpha: f64,
}

/// A fleet over time.
#[derive(Clone, Debug)]
pub struct FleetSince {
    /// The question.
    pub question: SinceQuestion,
    pub hosts: usize,
    pub sessions: usize,
    /// The first day and the last; empty: there are no days.
    pub days: [String; 2],
    /// Number of steps.
    pub steps: u32,
    /// Sessions that were left out: too many losses, unknown host, unknown day, or days before the first complete
    /// step.
    pub left_out: [usize; 4],
    /// Series that were long enough to examine: numbers of all hosts, and of each kind.
    pub series: usize,
    /// Reasons, as text, and metrics of these series.
    pub looked_at: BTreeSet<(String, Metric)>,
    /// Changes, the latest first.
    pub changes: Vec<LevelChange>,
    /// The first day of each step.
    pub(crate) dates: Vec<String>,
    /// The series that were examined.
    pub(crate) curves: Vec<Curve>,
}

/// The typical host's values of a series, by step.
#[derive(Clone, Debug)]
pub(crate) struct Curve {
    /// As in a change.
    pub(crate) stratum: Option<(String, String)>,
    pub(crate) key: Key,
    pub(crate) metric: Metric,
    /// Steps with enough hosts.
    pub(crate) steps: Vec<u32>,
    pub(crate) levels: Vec<f64>,
}

impl Curve {
    fn new(series: Series) -> Self {
        let Series { stratum, key, metric, levels: DayLevels { steps, levels, .. } } = series;
        let levels = levels.into_iter().map(f64::exp).collect();
        Self { stratum, key, metric, steps, levels }
    }
}

/// Searches a lake for changes.
///
/// # Errors
/// When it can't be read, or a condition uses a name that sessions don't have (an error of [`crate::SelectionError`]).
pub fn fleet_since<S: Storage>(storage: &S, question: SinceQuestion) -> io::Result<FleetSince> {
    let tables = counted(storage)?;
    let sessions = Sessions::read(storage, &tables)?;
    let strata: Vec<&str> = question.strata.iter().map(String::as_str).collect();
    sessions.check([question.selection.as_ref()], &strata)?;
    let choice = Choice {
        selection: question.selection.as_ref(),
        most_lost: question.most_lost,
        step_days: question.step_days,
    };
    let days = HostDays::new(&sessions, &choice);
    let values = days.values(storage, &tables, &question.metrics)?;
    let series = series(&days, values, &strata);
    let carriers = Carriers::new(&days, &sessions);
    let mut changes = changes(&series, question.alpha, &carriers);
    note_moves(&mut changes);
    name_kinds(&mut changes, &series);
    count_all_hosts(&mut changes, &series);
    carriers.say_what_they_share(&mut changes);
    sort(&mut changes);
    let ends = [0, days.steps.saturating_sub(1)];
    Ok(FleetSince {
        hosts: days.hosts.len(),
        sessions: days.sessions(),
        days: match days.steps {
            0 => Default::default(),
            _ => [days.date(ends[0]), days.last_date(ends[1])],
        },
        steps: days.steps,
        left_out: days.left_out,
        series: series.len(),
        looked_at: series
            .iter()
            .map(|series| (series.key.shown().to_owned(), series.metric))
            .collect(),
        question,
        changes,
        dates: (0..days.steps).map(|step| days.date(step)).collect(),
        curves: series.into_iter().map(Curve::new).collect(),
    })
}

/// Sorts changes: the latest first, on the same day the greatest first.
fn sort(changes: &mut [LevelChange]) {
    let size = |change: &LevelChange| change.ratio.ln().abs();
    changes.sort_by(|change, other| {
        let day = other.day.cmp(&change.day);
        day.then(size(other).total_cmp(&size(change))).then(change.stratum.cmp(&other.stratum))
    });
}

/// The series of all hosts and, if there are several kinds of hosts, of each kind.
fn series(
    days: &HostDays<'_>,
    values: BTreeMap<(Key, Metric), Vec<HostStep>>,
    strata: &[&str],
) -> Vec<Series> {
    let kinds: Vec<(&str, Vec<String>)> =
        strata.iter().map(|column| (*column, kinds(days, column))).collect();
    let mut all = Vec::new();
    for ((key, metric), values) in values {
        let mut add = |stratum: Option<(String, String)>, values: Vec<HostStep>| {
            let levels = DayLevels::new(values);
            if levels.steps.len() >= 2 * MIN_VALUES {
                all.push(Series { stratum, key: key.clone(), metric, levels });
            }
        };
        for (column, of_hosts) in &kinds {
            let names: BTreeSet<&String> = of_hosts.iter().collect();
            for name in names.iter().filter(|_| names.len() > 1) {
                let is_of = |value: &&HostStep| of_hosts.get(value.host as usize) == Some(*name);
                let kind_values = values.iter().filter(is_of).copied().collect();
                add(Some(((*column).to_owned(), (*name).clone())), kind_values);
            }
        }
        add(None, values);
    }
    all
}

/// The kind of each host, from its newest session.
fn kinds(days: &HostDays<'_>, column: &str) -> Vec<String> {
    let newest = |host: &crate::host_days::Host<'_>| {
        host.sessions.iter().rev().find_map(|(_, session)| session.text(column))
    };
    days.hosts.iter().map(|host| newest(host).unwrap_or_default()).collect()
}

/// Changes of all series, adjusted for the number of series.
fn changes(series: &[Series], alpha: f64, carriers: &Carriers<'_>) -> Vec<LevelChange> {
    let found =
        points_of_all(&series.iter().map(|series| &series.levels).collect::<Vec<_>>(), alpha);
    let mut all = Vec::new();
    for (series, points) in series.iter().zip(&found) {
        for (at, point) in points.iter().enumerate() {
            let margin = student_quantile(alpha, point.freedom) * point.error;
            let mut change = LevelChange::new(series, *point, margin);
            change.went_away = is_undone(points, at);
            let from =
                at.checked_sub(1).and_then(|at| points.get(at)).map_or(0, |previous| previous.at);
            let to = points.get(at + 1).map_or(usize::MAX, |next| next.at);
            carriers.place(&mut change, series, [from, point.at, to]);
            all.push(change);
        }
    }
    let unchanged = found.iter().filter(|points| points.is_empty()).count();
    let p: Vec<f64> = all.iter().map(|change| change.p).chain(vec![1.0; unchanged]).collect();
    for (change, p) in all.iter_mut().zip(benjamini_hochberg(&p)) {
        change.p_adjusted = p;
    }
    all
}

/// The places where series change. On average, at most a share of `alpha` of the series reported as changed have no
/// change (Benjamini and Hochberg): if `k` of `m` change, all of their places pass a test at `alpha * k / m`.
fn points_of_all(series: &[&DayLevels], alpha: f64) -> Vec<Vec<ChangePoint>> {
    let points = |levels: &DayLevels, changed: usize| {
        let level = alpha * changed as f64 / series.len().max(1) as f64;
        let holds = |[from, at, to]: [usize; 3]| {
            let step = |at: usize| levels.steps.get(at).copied().unwrap_or(u32::MAX);
            is_of_hosts(
                &levels.values,
                Bounds { from: step(from), at: step(at), to: step(to) },
                alpha,
            )
        };
        change_points_that_hold(&levels.levels, level, &holds)
    };
    let mut changed = series.len();
    let mut found: Vec<Vec<ChangePoint>> =
        series.iter().map(|levels| points(levels, changed)).collect();
    loop {
        let now = found.iter().filter(|points| !points.is_empty()).count();
        if now == changed {
            return found;
        }
        changed = now;
        // A series without a change at a level has none at a stricter one: the same places are removed first.
        for (levels, found) in series.iter().zip(&mut found).filter(|pair| !pair.1.is_empty()) {
            *found = points(levels, changed);
        }
    }
}

/// Whether the hosts on both sides of a change confirm it, by Student's t of their increases. If other hosts replaced
/// them, the levels could differ by as much from day to day.
fn is_of_hosts(values: &[HostStep], bounds: Bounds, alpha: f64) -> bool {
    let changes = host_changes(values, bounds).into_iter().map(|(_, [a, b])| b - a);
    let pairs: Vec<(f64, f64)> = changes.map(|change| (1.0, change.exp())).collect();
    compare_pairs(&pairs, alpha).is_some_and(|found| found.p <= alpha)
}

/// Whether half of a change or more is gone at the end of its series.
fn is_undone(points: &[ChangePoint], at: usize) -> bool {
    let (Some(point), Some(last)) = (points.get(at), points.last()) else { return false };
    (last.after - point.before) / (point.after - point.before) < 0.5
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change_points::change_points;

    #[test]
    fn what_goes_back_went_away() {
        let level =
            |value: f64, days: usize| (0..days).map(move |day| value + 0.01 * (day % 3) as f64);
        let values: Vec<f64> = level(1.0, 8).chain(level(2.0, 8)).chain(level(1.1, 8)).collect();
        let points = change_points(&values, 0.05);
        assert_eq!(points.iter().map(|point| point.at).collect::<Vec<_>>(), [8, 16]);
        assert_eq!([is_undone(&points, 0), is_undone(&points, 1)], [true, false]);
    }
}
