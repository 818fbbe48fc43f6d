//! Whether a workload runs otherwise under one configuration than under another, by runs of both in blocks.

use stats::{Comparison, benjamini_hochberg, compare_pairs, mean, standard_deviation, trend};

/// A level of chance below which something is said.
const ALPHA: f64 = 0.05;

/// A number is an outlier if it is further from the median than this many median deviations.
const FAR: f64 = 5.0;

/// What makes the median of deviations a standard deviation, where numbers are normally distributed.
const NORMAL: f64 = 1.4826;

/// Which configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AbSide {
    /// The first one.
    A,
    /// The second one.
    B,
}

impl AbSide {
    /// Its name in documents, and for setups.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::A => "a",
            Self::B => "b",
        }
    }
}

/// One run of the workload.
#[derive(Clone, Debug, PartialEq)]
pub struct AbRun {
    /// Its configuration.
    pub side: AbSide,
    /// Its block, from 1: one run of each configuration, one right after the other.
    pub block: usize,
    /// Its numbers, in the order of the metrics.
    pub values: Vec<f64>,
}

/// A metric under both configurations.
#[derive(Clone, Debug, PartialEq)]
pub struct AbMetric {
    /// Its name.
    pub name: String,
    /// Means under A and B.
    pub means: [f64; 2],
    /// Standard deviations; `None` of less than two runs.
    pub deviations: [Option<f64>; 2],
    /// How B relates to A, by blocks; `None` of less than two blocks.
    pub change: Option<Comparison>,
    /// The chance of a change that great where there is none, adjusted for the number of metrics.
    pub p_adjusted: Option<f64>,
    /// How much it grew from the first run to the last, of both configurations, as a share; only where that is
    /// hardly chance.
    pub drift: Option<f64>,
    /// Runs, by their place in [`Ab::runs`], that are far from others of their configuration. They count.
    pub outliers: Vec<usize>,
}

impl AbMetric {
    /// Whether B differs from A, chance aside.
    #[must_use]
    pub fn is_significant(&self) -> bool {
        self.p_adjusted.is_some_and(|p| p < ALPHA)
    }

    /// Whether it is a time.
    #[must_use]
    pub fn is_time(&self) -> bool {
        self.name.ends_with("_ns")
    }
}

/// An experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Ab {
    /// What was measured.
    pub metrics: Vec<AbMetric>,
    /// All runs in the order in which they ran.
    pub runs: Vec<AbRun>,
    /// It ended before it was done.
    pub is_interrupted: bool,
}

/// Compares runs, of which each block has two.
#[must_use]
pub fn ab(names: Vec<String>, runs: Vec<AbRun>) -> Ab {
    let metrics = names.into_iter().enumerate().map(|(at, name)| metric(name, at, &runs));
    let mut metrics: Vec<AbMetric> = metrics.collect();
    let p = |metric: &AbMetric| metric.change.as_ref().map(|change| change.p);
    let all: Vec<f64> = metrics.iter().filter_map(p).collect();
    let mut adjusted = benjamini_hochberg(&all).into_iter();
    for metric in metrics.iter_mut().filter(|metric| metric.change.is_some()) {
        metric.p_adjusted = adjusted.next();
    }
    Ab { metrics, runs, is_interrupted: false }
}

fn metric(name: String, at: usize, runs: &[AbRun]) -> AbMetric {
    let value = |run: &AbRun| run.values.get(at).copied().unwrap_or(0.0);
    let of = |side: AbSide| {
        let own = runs.iter().enumerate().filter(move |(_, run)| run.side == side);
        own.map(|(place, run)| (place, value(run))).collect::<Vec<_>>()
    };
    let sides = [of(AbSide::A), of(AbSide::B)];
    let values =
        sides.each_ref().map(|side| side.iter().map(|(_, value)| *value).collect::<Vec<_>>());
    let pairs: Vec<(f64, f64)> = runs
        .chunk_by(|one, other| one.block == other.block)
        .filter_map(|block| {
            let of = |side| block.iter().find(|run| run.side == side).map(value);
            Some((of(AbSide::A)?, of(AbSide::B)?))
        })
        .collect();
    let mut outliers: Vec<usize> = sides.iter().flat_map(|side| outliers(side)).collect();
    outliers.sort_unstable();
    AbMetric {
        name,
        means: values.each_ref().map(|values| mean(values).unwrap_or(0.0)),
        deviations: values.each_ref().map(|values| standard_deviation(values)),
        change: compare_pairs(&pairs, ALPHA),
        p_adjusted: None,
        drift: drift(&pairs),
        outliers,
    }
}

/// The places of values that are far from the others, by the median and the median of deviations from it.
fn outliers(values: &[(usize, f64)]) -> Vec<usize> {
    let Some(middle) = median(values.iter().map(|(_, value)| *value)) else { return Vec::new() };
    let deviation = median(values.iter().map(|(_, value)| (value - middle).abs())).unwrap_or(0.0);
    let far = FAR * NORMAL * deviation;
    let is_far = |value: f64| far > 0.0 && (value - middle).abs() > far;
    values.iter().filter(|(_, value)| is_far(*value)).map(|(place, _)| *place).collect()
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// By how much blocks as a whole grew, as a share of their mean.
fn drift(pairs: &[(f64, f64)]) -> Option<f64> {
    let blocks: Vec<f64> = pairs.iter().map(|(a, b)| f64::midpoint(*a, *b)).collect();
    let (slope, p) = trend(&blocks)?;
    let whole = mean(&blocks).filter(|mean| *mean != 0.0)?;
    (p < ALPHA).then(|| slope * (blocks.len() as f64 - 1.0) / whole)
}
