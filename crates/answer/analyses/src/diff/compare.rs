//! Compares the runs of two sides: one run a side by what varies within each, several by what
//! varies between them.

use std::collections::BTreeMap;
use std::sync::Arc;

use stats::{
    Permutation, Scale, Side, benjamini_hochberg, binomial_two_sided, compare, mean, permute,
    standard_deviation,
};

use super::estimate::Resampled;
use super::matching::Matching;
use super::moved::{Moved, moved};
use super::question::{Estimator, KeyValue, Lost, MeasuredGroup, Metric, Question, Run};

/// How runs are compared.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Differences that are none may be a share of this among those called significant; intervals
    /// hold the true value with the confidence that is left.
    pub alpha: f64,
    /// What resamples are drawn from.
    pub seed: u64,
}

/// What a side says of a metric.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values {
    /// The value, of several runs the mean; none where it was not recorded.
    pub value: Option<f64>,
    /// Standard deviation between runs.
    pub sd: Option<f64>,
    /// Runs that have a value.
    pub runs: usize,
}

/// A metric of a group on both sides.
#[derive(Clone, Debug)]
pub struct DiffRow {
    /// The group: a value for each of [`Question::columns`], VMs by their place in [`Diff::vms`]. All rows
    /// of a group have it together: there may be hundreds of thousands of rows.
    pub key: Arc<[KeyValue]>,
    /// Place in [`Question::metrics`].
    pub metric: usize,
    /// The first side.
    pub a: Values,
    /// The second side.
    pub b: Values,
    /// What b is of a; none where either is zero or has no value.
    pub ratio: Option<f64>,
    /// The interval, and what it is of. None where the runs do not give one.
    pub interval: Option<(Scale, f64, f64)>,
    /// Chance of such a difference where there is none.
    pub p: Option<f64>,
    /// The same after Benjamini and Hochberg, over all rows that have one.
    pub p_adjusted: Option<f64>,
    /// The same by parting the runs again, where both sides have several.
    pub permutation: Option<Permutation>,
    /// The sides differ.
    pub significant: bool,
    /// How much more of the recording's time the group takes on the second side, in its own weight.
    pub effect: f64,
}

/// The comparison of two sides.
#[derive(Debug)]
pub struct Diff {
    /// What was compared.
    pub question: &'static Question,
    /// All groups with all metrics that either side has, the groups with the greatest effect first.
    pub rows: Vec<DiffRow>,
    /// Names of the VMs, as in the first run that has each.
    pub vms: Vec<String>,
    /// Functions that others call on the second side than on the first.
    pub moved: Vec<Moved>,
    /// VMs that were taken for one another though their names differ.
    pub renamed: Vec<(String, String)>,
    /// Runs of either side.
    pub runs: (usize, usize),
    /// Seconds that the runs of either side lasted.
    pub seconds: (Vec<f64>, Vec<f64>),
    /// What the runs of either side lost.
    pub lost: (Lost, Lost),
    /// The smallest p that parting the runs again can give.
    pub least_p: Option<f64>,
    /// Whether times are nanoseconds.
    pub nanoseconds: bool,
    /// As asked for.
    pub options: Options,
}

/// A group's place in each run that has it.
type Groups = BTreeMap<Arc<[KeyValue]>, Vec<Option<usize>>>;

/// Compares the runs of `b` with those of `a`. All have to be on clocks of one kind; those of
/// others are left out of nothing, so that is for the caller to see to.
#[must_use]
pub fn diff(question: &'static Question, a: &[Run], b: &[Run], options: Options) -> Diff {
    let runs: Vec<&Run> = a.iter().chain(b).collect();
    let matching = Matching::from_runs(runs.iter().copied());
    let groups = gathered(&runs, &matching);
    let part = |at: usize| options.seed ^ (at as u64).rotate_right(8);
    let mut resampled: Vec<Resampled<'_>> =
        runs.iter().enumerate().map(|(at, run)| Resampled::new(run, part(at))).collect();
    let mut rows = Vec::with_capacity(most_rows(question, &runs, &groups));
    for (key, places) in &groups {
        // A copy of one group at a time: a recording may have thousands.
        let of_run = |(run, place): (&&Run, &Option<usize>)| run.groups.get((*place)?).cloned();
        let mut of_runs: Vec<_> = runs.iter().zip(places).map(of_run).collect();
        let mut present: Vec<&mut MeasuredGroup> = of_runs.iter_mut().flatten().collect();
        (question.settle)(&mut present);
        let group = Group { question, of_runs: &of_runs, first: a.len(), options: &options };
        rows.extend(group.rows(key, &mut resampled));
    }
    correct(&mut rows, options.alpha);
    // No two rows are equal; a sort that is stable would take half as much memory again.
    rows.sort_unstable_by(|row, other| {
        let by_effect = other.effect.abs().total_cmp(&row.effect.abs());
        by_effect.then_with(|| row.key.cmp(&other.key)).then(row.metric.cmp(&other.metric))
    });
    let seconds: Vec<f64> = resampled.iter().map(Resampled::seconds).collect();
    let (of_a, of_b) = seconds.split_at(a.len().min(seconds.len()));
    let lost = |runs: &[Run]| runs.iter().map(|run| run.lost).fold(Lost::default(), Lost::with);
    Diff {
        question,
        least_p: rows.iter().filter_map(|row| Some(row.permutation?.least)).reduce(f64::min),
        rows,
        moved: moved(a, b),
        vms: matching.vms.into_iter().map(|vm| vm.name).collect(),
        renamed: matching.renamed,
        runs: (a.len(), b.len()),
        seconds: (of_a.to_vec(), of_b.to_vec()),
        lost: (lost(a), lost(b)),
        nanoseconds: runs.iter().all(|run| run.nanoseconds),
        options,
    }
}

/// Where the groups of all runs are, under keys that mean the same in all of them.
fn gathered(runs: &[&Run], matching: &Matching) -> Groups {
    let mut groups = Groups::new();
    for (at, run) in runs.iter().enumerate() {
        let places = matching.places.get(at);
        for (place, group) in run.groups.iter().enumerate() {
            let key = group.key.iter().map(|value| match value {
                KeyValue::Vm(vm) => {
                    KeyValue::Vm(places.and_then(|places| places.get(*vm)).copied().unwrap_or(*vm))
                }
                other => other.clone(),
            });
            let of_runs = groups.entry(key.collect()).or_insert_with(|| vec![None; runs.len()]);
            if let Some(slot) = of_runs.get_mut(at) {
                *slot = Some(place);
            }
        }
    }
    groups
}

/// How many rows the groups have at most: one for each metric that a run recorded. Memory for rows that are
/// added one by one would be twice as much at its end.
fn most_rows(question: &Question, runs: &[&Run], groups: &Groups) -> usize {
    let all = u32::MAX.checked_shl(question.metrics.len() as u32).map_or(u32::MAX, |bits| !bits);
    let of_group = |places: &Vec<Option<usize>>| {
        let present = runs.iter().zip(places).filter_map(|(run, place)| run.groups.get((*place)?));
        let recorded = present.fold(0, |bits, group| bits | !group.unrecorded);
        (recorded & all).count_ones() as usize
    };
    groups.values().map(of_group).sum()
}

/// One group in all runs.
struct Group<'g> {
    question: &'static Question,
    of_runs: &'g [Option<MeasuredGroup>],
    /// Runs of the first side.
    first: usize,
    options: &'g Options,
}

impl Group<'_> {
    fn rows(&self, key: &Arc<[KeyValue]>, resampled: &mut [Resampled<'_>]) -> Vec<DiffRow> {
        let weight = self.rates(self.question.weight, resampled);
        let effect = mean(&weight.1).unwrap_or(0.0) - mean(&weight.0).unwrap_or(0.0);
        let metrics = self.question.metrics.iter().enumerate();
        metrics
            .filter_map(|(at, metric)| {
                let mut row = self.row(at, metric, resampled)?;
                (row.key, row.effect) = (Arc::clone(key), effect);
                Some(row)
            })
            .collect()
    }

    /// A sum per second in every run of either side.
    fn rates(&self, sum: usize, resampled: &[Resampled<'_>]) -> (Vec<f64>, Vec<f64>) {
        let seconds = resampled.iter().map(Resampled::seconds);
        let rates = self.of_runs.iter().zip(seconds).map(|(group, seconds)| {
            let total = group.as_ref().map_or(0, |group| group.series.total(sum));
            if seconds > 0.0 { total as f64 / seconds } else { 0.0 }
        });
        let mut of_a: Vec<f64> = rates.collect();
        let of_b = of_a.split_off(self.first.min(of_a.len()));
        (of_a, of_b)
    }

    /// The group in a run, unless the run has no events for the metric.
    fn recorded(&self, run: usize, metric: usize) -> Option<Option<&MeasuredGroup>> {
        match self.of_runs.get(run)?.as_ref() {
            Some(group) if group.unrecorded >> metric & 1 == 1 => None,
            group => Some(group),
        }
    }

    fn row(&self, at: usize, metric: &Metric, resampled: &mut [Resampled<'_>]) -> Option<DiffRow> {
        // A metric that no run has the events for says nothing.
        let has = |run: usize| matches!(self.recorded(run, at), Some(Some(_)));
        let mut recorded = (0..self.of_runs.len()).filter(|run| has(*run)).peekable();
        recorded.peek()?;
        let values: Vec<Option<f64>> = resampled
            .iter()
            .enumerate()
            .map(|(run, sampled)| sampled.value(metric, self.recorded(run, at)?))
            .collect();
        let (of_a, of_b) = values.split_at(self.first.min(values.len()));
        let present_values =
            |values: &[Option<f64>]| values.iter().flatten().copied().collect::<Vec<f64>>();
        let (of_a, of_b) = (present_values(of_a), present_values(of_b));
        let mut row = DiffRow {
            key: Arc::default(),
            metric: at,
            a: Values::from_runs(&of_a),
            b: Values::from_runs(&of_b),
            ratio: None,
            interval: None,
            p: None,
            p_adjusted: None,
            permutation: None,
            significant: false,
            effect: 0.0,
        };
        let (Some(a), Some(b)) = (row.a.value, row.b.value) else { return Some(row) };
        row.ratio = (a > 0.0 && b > 0.0).then(|| b / a);
        if a == 0.0 && b == 0.0 {
            return Some(row);
        }
        let sides = match (of_a.as_slice(), of_b.as_slice()) {
            ([_], [_]) => self.within(at, metric, resampled),
            _ => between(&of_a, &of_b),
        };
        let Some((a, b)) = sides else { return Some(row) };
        let found = compare(&a, &b, self.options.alpha);
        row.interval = Some((found.scale, found.low, found.high));
        row.p = Some(self.judged(metric, found.p, found.scale, &a, &b, resampled));
        if of_a.len() > 1 && of_b.len() > 1 {
            row.permutation = permute(&of_a, &of_b, self.options.seed);
        }
        Some(row)
    }

    /// Both sides by what varies within the one run of each that has a value.
    fn within(
        &self,
        at: usize,
        metric: &Metric,
        resampled: &mut [Resampled<'_>],
    ) -> Option<(Side, Side)> {
        let mut sides = resampled.iter_mut().enumerate().filter_map(|(run, sampled)| {
            let group = self.recorded(run, at)?;
            sampled.value(metric, group)?;
            Some(sampled.side(metric, group))
        });
        sides.next()?.zip(sides.next()?)
    }

    /// A p-value that knows of what the test it comes from does not.
    fn judged(
        &self,
        metric: &Metric,
        p: f64,
        scale: Scale,
        a: &Side,
        b: &Side,
        resampled: &[Resampled<'_>],
    ) -> f64 {
        // Sides that do not vary at all: constants differ, but it takes some values to call a
        // number a constant.
        let p = if a.error == 0.0 && b.error == 0.0 && p < 1.0 {
            0.5f64.powf(a.freedom + b.freedom)
        } else {
            p
        };
        // Few events are not normally distributed: as rare as they are on both sides together, how
        // often would they fall on the sides as they did?
        if let Some(samples) = metric.samples {
            return p.max(self.chance_of_counts(samples, resampled));
        }
        let counted = metric.estimator == Estimator::PerSecond(self.question.count);
        let rate = matches!(metric.estimator, Estimator::PerSecond(_));
        if counted || (rate && scale == Scale::Difference) {
            p.max(self.chance_of_counts(self.question.count, resampled))
        } else {
            p
        }
    }

    fn chance_of_counts(&self, count: usize, resampled: &[Resampled<'_>]) -> f64 {
        let mut counts = [0u64; 2];
        let mut seconds = [0.0; 2];
        for (run, (group, sampled)) in self.of_runs.iter().zip(resampled).enumerate() {
            let side = usize::from(run >= self.first);
            let count = group.as_ref().map_or(0, |group| group.series.total(count));
            if let (Some(all), Some(time)) = (counts.get_mut(side), seconds.get_mut(side)) {
                *all += count;
                *time += sampled.seconds();
            }
        }
        let [a, b] = counts;
        binomial_two_sided(a, a.saturating_add(b), seconds[0] / (seconds[0] + seconds[1]))
    }
}

impl Values {
    fn from_runs(values: &[f64]) -> Self {
        Self { value: mean(values), sd: standard_deviation(values), runs: values.len() }
    }
}

/// Both sides by what varies between their runs. Two runs hardly show how much runs vary, and one
/// does not at all: a side with one or two is assumed to vary as much, in proportion, as the other.
fn between(of_a: &[f64], of_b: &[f64]) -> Option<(Side, Side)> {
    let (a, b) = (Side::of_runs(of_a)?, Side::of_runs(of_b)?);
    if a.freedom > 1.0 && b.freedom > 1.0 {
        return Some((a, b));
    }
    let freedom = a.freedom + b.freedom;
    let ratio = a.value > 0.0 && b.value > 0.0;
    let variance = |values: &[f64], side: &Side| {
        let unit = if ratio { side.value } else { 1.0 };
        standard_deviation(values).map_or(0.0, |sd| (sd / unit).powi(2)) * side.freedom
    };
    let pooled = (variance(of_a, &a) + variance(of_b, &b)) / freedom;
    let runs = 1.0 / (a.freedom + 1.0) + 1.0 / (b.freedom + 1.0);
    // All of the error stands on one side, so that its freedom counts once.
    let error = (pooled * runs).sqrt() * if ratio { a.value } else { 1.0 };
    (freedom > 0.0)
        .then_some((Side { error, freedom, ..a }, Side { error: 0.0, freedom: 1.0, ..b }))
}

/// Says which rows differ: those whose p stands all comparisons, and that parting the runs again
/// does not contradict, where there are enough runs for it to be able to agree.
fn correct(rows: &mut [DiffRow], alpha: f64) {
    let p: Vec<f64> = rows.iter().filter_map(|row| row.p).collect();
    let mut adjusted = benjamini_hochberg(&p).into_iter();
    for row in rows {
        if row.p.is_none() {
            continue;
        }
        row.p_adjusted = adjusted.next();
        let stands = row.p_adjusted.is_some_and(|p| p <= alpha);
        row.significant = stands && row.not_contradicted(alpha);
    }
}

impl DiffRow {
    /// Parting the runs again agrees, or could not.
    #[must_use]
    pub fn not_contradicted(&self, alpha: f64) -> bool {
        self.permutation.is_none_or(|test| test.least > alpha || test.p <= alpha)
    }
}
