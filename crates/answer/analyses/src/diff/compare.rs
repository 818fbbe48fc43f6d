//! Compares the runs of two sides: single runs by the variation within them, several runs by the variation between
//! them.

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

/// Parameters of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Max share of false positives among significant differences; intervals have the confidence `1 - alpha`.
    pub alpha: f64,
    /// Seed of the resampling.
    pub seed: u64,
}

/// Values of a metric on one side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values {
    /// The value, or the mean of several runs; `None` if it was not recorded.
    pub value: Option<f64>,
    /// Standard deviation between runs.
    pub sd: Option<f64>,
    /// Number of runs with a value.
    pub runs: usize,
}

/// A metric of a group, compared between both sides.
#[derive(Clone, Debug)]
pub struct DiffRow {
    /// The group: one value per column in [`Question::columns`], with VMs as indexes into [`Diff::vms`]. Rows of
    /// the same group share it, because there can be hundreds of thousands of rows.
    pub key: Arc<[KeyValue]>,
    /// Index in [`Question::metrics`].
    pub metric: usize,
    pub a: Values,
    pub b: Values,
    /// `b` divided by `a`; `None` if either is zero or missing.
    pub ratio: Option<f64>,
    /// Confidence interval and its scale; `None` if the runs do not give one.
    pub interval: Option<(Scale, f64, f64)>,
    /// P-value: probability of such a difference by chance.
    pub p: Option<f64>,
    /// P-value after the Benjamini-Hochberg correction over all rows.
    pub p_adjusted: Option<f64>,
    /// Permutation test, if both sides have several runs.
    pub permutation: Option<Permutation>,
    /// Whether the difference is significant.
    pub significant: bool,
    /// Difference of the group's weight per second, the second side minus the first.
    pub effect: f64,
}

#[derive(Debug)]
pub struct Diff {
    pub question: &'static Question,
    /// All metrics of all groups on either side; groups with the largest effect first.
    pub rows: Vec<DiffRow>,
    /// Names of the VMs, from the first run of each.
    pub vms: Vec<String>,
    /// Functions whose callers changed from the first side to the second.
    pub moved: Vec<Moved>,
    /// Matched VMs with different names.
    pub renamed: Vec<(String, String)>,
    /// Number of runs per side.
    pub runs: (usize, usize),
    /// Durations of the runs per side, in seconds.
    pub seconds: (Vec<f64>, Vec<f64>),
    /// Losses of the runs per side.
    pub lost: (Lost, Lost),
    /// Smallest p-value that the permutation test can give.
    pub least_p: Option<f64>,
    /// Whether times are nanoseconds.
    pub nanoseconds: bool,
    pub options: Options,
}

/// Groups by key, with their index in each run.
type Groups = BTreeMap<Arc<[KeyValue]>, Vec<Option<usize>>>;

/// Compares the runs of `b` with those of `a`. All runs must use the same kind of clock, which the caller checks.
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
        // Copies one group at a time, because a recording can have thousands.
        let of_run = |(run, place): (&&Run, &Option<usize>)| run.groups.get((*place)?).cloned();
        let mut of_runs: Vec<_> = runs.iter().zip(places).map(of_run).collect();
        let mut present: Vec<&mut MeasuredGroup> = of_runs.iter_mut().flatten().collect();
        (question.settle)(&mut present);
        let group = Group { question, of_runs: &of_runs, first: a.len(), options: &options };
        rows.extend(group.rows(key, &mut resampled));
    }
    correct(&mut rows, options.alpha);
    // An unstable sort suffices, because no two rows are equal; a stable sort would need half as much memory
    // again.
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

/// Indexes of the groups of all runs, with VM indexes unified across runs.
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

/// Max number of rows: one per group and recorded metric. Preallocating it halves the peak memory, compared with a
/// growing vector.
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
    /// Number of runs of the first side.
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

    /// A sum per second in every run, by side.
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

    /// The group in a run; `None` if the run has no events for the metric, `Some(None)` if it has no such group.
    fn recorded(&self, run: usize, metric: usize) -> Option<Option<&MeasuredGroup>> {
        match self.of_runs.get(run)?.as_ref() {
            Some(group) if group.unrecorded >> metric & 1 == 1 => None,
            group => Some(group),
        }
    }

    fn row(&self, at: usize, metric: &Metric, resampled: &mut [Resampled<'_>]) -> Option<DiffRow> {
        // A metric without events in any run gives no row.
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

    /// Both sides, by the variation within the only run of each that has a value.
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

    /// Corrects a p-value for conditions that its test does not consider.
    fn judged(
        &self,
        metric: &Metric,
        p: f64,
        scale: Scale,
        a: &Side,
        b: &Side,
        resampled: &[Resampled<'_>],
    ) -> f64 {
        // Neither side varies. Constants differ, but several values are needed to assume a constant.
        let p = if a.error == 0.0 && b.error == 0.0 && p < 1.0 {
            0.5f64.powf(a.freedom + b.freedom)
        } else {
            p
        };
        // Few events are not normally distributed: tests the probability of their distribution over both sides.
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

/// Both sides, by the variation between their runs. One or two runs do not show it well, so a side with so few
/// runs is assumed to vary as much as the other one, in proportion to its value.
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
    // All of the error is on one side, so that its degrees of freedom count once.
    let error = (pooled * runs).sqrt() * if ratio { a.value } else { 1.0 };
    (freedom > 0.0)
        .then_some((Side { error, freedom, ..a }, Side { error: 0.0, freedom: 1.0, ..b }))
}

/// Marks rows as significant if their adjusted p-value is small enough, and the permutation test does not
/// contradict. With too few runs the permutation test cannot contradict.
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
    /// Whether the permutation test agrees, or has too few runs to contradict.
    #[must_use]
    pub fn not_contradicted(&self, alpha: f64) -> bool {
        self.permutation.is_none_or(|test| test.least > alpha || test.p <= alpha)
    }
}
