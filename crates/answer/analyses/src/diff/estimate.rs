//! Estimates a metric of one group in one run, with its standard error.
//!
//! The run's slices of time are resampled in blocks; the standard deviation over the resamples is the standard
//! error. The degrees of freedom of the error are the number of blocks, or fewer if a few blocks dominate the
//! variation.

use std::collections::HashMap;

use stats::{Blocks, Chance, Resamples, Side, standard_deviation};

use super::grid::Grid;
use super::histogram::{Cumulative, coarseness};
use super::question::{Estimator, MeasuredGroup, Metric, Run};

/// Number of resamples: determines the error within 3%.
const RESAMPLES: usize = 500;

/// Min values beyond a quantile for an error: the maximum of a few values says nothing about its own variation.
const MIN_BEYOND: f64 = 10.0;

/// Min non-empty slices for an error.
const MIN_SLICES: usize = 4;

#[derive(Debug)]
pub(super) struct Resampled<'r> {
    run: &'r Run,
    grid: Grid,
    /// Duration of each slice.
    slice_seconds: Vec<f64>,
    seed: u64,
    drawn: HashMap<(usize, usize), Drawn>,
}

/// Resamples with their durations, which all rates of a run share.
#[derive(Debug)]
struct Drawn {
    resamples: Resamples,
    seconds: Vec<f64>,
}

/// Divisor of a ratio.
enum Divisor<'d> {
    /// Durations of the run's slices.
    Seconds,
    /// Another sum by slice.
    Sum(&'d [f64]),
}

impl<'r> Resampled<'r> {
    pub(super) fn new(run: &'r Run, seed: u64) -> Self {
        let (from_ns, to_ns) = run.span_ns;
        let grid = Grid::at(from_ns).joined(&Grid::at(to_ns));
        let widths = grid.widths(from_ns, to_ns);
        let slice_seconds = widths.iter().map(|width| *width as f64 / 1e9).collect();
        Self { run, grid, slice_seconds, seed, drawn: HashMap::new() }
    }

    pub(super) fn seconds(&self) -> f64 {
        let ticks = self.run.span_ns.1.saturating_sub(self.run.span_ns.0) as f64;
        // On a clock without nanoseconds, a "second" is 1e9 ticks.
        ticks / 1e9
    }

    /// The metric's value in this run; a rate is zero if the run has no such group.
    pub(super) fn value(&self, metric: &Metric, group: Option<&MeasuredGroup>) -> Option<f64> {
        let seconds = self.seconds();
        match (metric.estimator, group) {
            (Estimator::PerSecond(sum), group) => {
                let total = group.map_or(0, |group| group.series.total(sum));
                (seconds > 0.0).then(|| total as f64 / seconds)
            }
            (_, None) => None,
            (Estimator::Share(sum), Some(group)) => {
                let total = self.run.wholes.get(group.whole_index?)?.total(sum);
                divided(group.series.total(sum), total)
            }
            (Estimator::Per(sum, per), Some(group)) => {
                divided(group.series.total(sum), group.series.total(per))
            }
            (Estimator::Quantile(per_mille), Some(group)) => {
                let [value] = group.series.durations().percentiles([per_mille]);
                value.map(|value| value as f64)
            }
        }
    }

    /// The value with its error; `None` if the run does not determine them.
    pub(super) fn side(&mut self, metric: &Metric, group: Option<&MeasuredGroup>) -> Option<Side> {
        let value = self.value(metric, group)?;
        let Some(group) = group else {
            // A missing group has no variation; the other side determines the error.
            return Some(Side { value, error: 0.0, freedom: 1.0 });
        };
        match metric.estimator {
            Estimator::PerSecond(sum) => {
                let numerators = column(&group.series.sums_on(&self.grid), sum);
                self.ratio(&numerators, &Divisor::Seconds)
            }
            Estimator::Share(sum) => {
                let numerators = column(&group.series.sums_on(&self.grid), sum);
                let whole_series = self.run.wholes.get(group.whole_index?)?;
                let per = column(&whole_series.sums_on(&self.grid), sum);
                self.ratio(&numerators, &Divisor::Sum(&per))
            }
            Estimator::Per(sum, per) => {
                let sums = group.series.sums();
                self.ratio(&column(&sums, sum), &Divisor::Sum(&column(&sums, per)))
            }
            Estimator::Quantile(per_mille) => self.quantile(group, value, per_mille),
        }
    }

    /// Ratio of two sums by slice.
    fn ratio(&mut self, numerators: &[f64], divisor: &Divisor<'_>) -> Option<Side> {
        let per = match divisor {
            Divisor::Seconds => self.slice_seconds.as_slice(),
            Divisor::Sum(per) => per,
        };
        let value = numerators.iter().sum::<f64>() / per.iter().sum::<f64>();
        let pull: Vec<f64> =
            numerators.iter().zip(per).map(|(numerator, per)| numerator - value * per).collect();
        let holding = per.iter().filter(|per| **per > 0.0).count();
        let spread = Spread::from_pull(&pull, holding)?;
        let drawn = self.drawn(numerators.len(), spread.block);
        let values = match divisor {
            Divisor::Seconds => drawn.resamples.ratios(numerators, &drawn.seconds),
            Divisor::Sum(per) => drawn.resamples.ratios(numerators, &drawn.resamples.sums(per)),
        };
        let error = standard_deviation(&values)? * spread.correction();
        Some(Side { value, error, freedom: spread.freedom })
    }

    fn quantile(&mut self, group: &MeasuredGroup, value: f64, per_mille: u64) -> Option<Side> {
        let share = per_mille as f64 / 1000.0;
        let beyond = group.series.durations().count() as f64 * share.min(1.0 - share);
        if beyond < MIN_BEYOND {
            return None;
        }
        let slices = group.series.grid()?.len();
        let sums: Cumulative = group.series.histogram().cumulative(slices);
        let pull = sums.pull(value as u64, per_mille);
        let holding = pull.iter().filter(|pull| **pull != 0.0).count();
        let spread = Spread::from_pull(&pull, holding)?;
        let quantile = |weights| sums.quantile(weights, per_mille);
        let values: Vec<f64> =
            self.drawn(slices, spread.block).resamples.each().filter_map(quantile).collect();
        let error = standard_deviation(&values)? * spread.correction();
        let error = error.hypot(coarseness(value as u64));
        Some(Side { value, error, freedom: spread.freedom })
    }

    /// Resamples for a number of slices and a block length, shared by all metrics.
    fn drawn(&mut self, slices: usize, block: usize) -> &Drawn {
        let part = (slices as u64) << 32 | block as u64;
        let chance = Chance::of_part(self.seed, part);
        let Self { slice_seconds, drawn, .. } = self;
        drawn.entry((slices, block)).or_insert_with(|| {
            let resamples = Resamples::draw(slices, block, RESAMPLES, chance);
            Drawn { seconds: resamples.sums(slice_seconds), resamples }
        })
    }
}

/// Distribution of a metric's variation over slices.
#[derive(Clone, Copy, Debug)]
struct Spread {
    /// Slices per block.
    block: usize,
    blocks: f64,
    /// See [`Blocks::missing`].
    missing: f64,
    freedom: f64,
}

impl Spread {
    /// `pull` has the contribution of each slice to the metric's deviation; its sum is zero. `holding` is the
    /// number of slices with data.
    fn from_pull(pull: &[f64], holding: usize) -> Option<Self> {
        let slices = pull.len();
        if holding.min(slices) < MIN_SLICES {
            return None;
        }
        let Blocks { length: block, missing } = Blocks::for_series(pull);
        let blocks = slices as f64 / block as f64;
        let event =
            |power| pull.iter().map(|deviation| deviation.powi(power)).sum::<f64>() / slices as f64;
        let (second, fourth) = (event(2), event(4));
        let kurtosis = if second > 0.0 { fourth / second.powi(2) } else { 3.0 };
        // Means of blocks are closer to a normal distribution than slices.
        let kurtosis = 3.0 + (kurtosis - 3.0) / block as f64;
        // A variance of n values has the precision of one of 2n / (kurtosis - 1) normal values.
        let effective = 2.0 * blocks / (kurtosis - 1.0).max(1.0);
        let freedom = effective.min(blocks - 1.0).min(holding as f64 - 1.0).max(1.0);
        Some(Self { block, blocks, missing, freedom })
    }

    /// Corrects the standard deviation of resamples for the number of blocks, and for correlation between blocks.
    fn correction(&self) -> f64 {
        (self.missing * self.blocks / (self.blocks - 1.0).max(1.0)).sqrt()
    }
}

fn divided(numerator: u64, per: u64) -> Option<f64> {
    (per > 0).then(|| numerator as f64 / per as f64)
}

fn column(sums: &[super::Sums], sum: usize) -> Vec<f64> {
    sums.iter().map(|sums| sums.get(sum).copied().unwrap_or(0) as f64).collect()
}
