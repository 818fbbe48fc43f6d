//! Compares configurations of one experiment: runs come in blocks, and each block has one run of each
//! configuration.

use stats::{
    Comparison, benjamini_hochberg, compare_pairs, mean, median, standard_deviation, trend,
};

/// Significance level of reported changes.
const ALPHA: f64 = 0.05;

/// A value is an outlier if its distance from the median exceeds this many median absolute deviations.
const FAR: f64 = 5.0;

/// Converts a median absolute deviation into a standard deviation, for normally distributed values.
const NORMAL: f64 = 1.4826;

/// Max configurations of one experiment.
pub const MAX_SIDES: usize = NAMES.len();

/// Names of the configurations in documents and for setup commands.
const NAMES: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];

/// A configuration, by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AbSide(u8);

impl AbSide {
    /// The baseline: all other configurations are compared with it.
    pub const A: Self = Self(0);
    pub const B: Self = Self(1);

    /// The first `sides` configurations.
    pub fn first(sides: usize) -> impl Iterator<Item = Self> {
        (0..sides.min(MAX_SIDES)).map(|place| Self(place as u8))
    }

    /// Index, from 0.
    #[must_use]
    pub const fn place(self) -> usize {
        self.0 as usize
    }

    /// Name in documents and for setup commands.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES.get(self.place()).copied().unwrap_or("?")
    }
}

/// One run of the workload.
#[derive(Clone, Debug, PartialEq)]
pub struct AbRun {
    pub side: AbSide,
    /// Block number, from 1. A block has one run of each configuration, one right after the other.
    pub block: usize,
    /// Values in the order of the metrics.
    pub values: Vec<f64>,
}

/// A run that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbFailure {
    pub side: AbSide,
    /// Block number, from 1; 0 during warm-up.
    pub block: usize,
    /// Run number, from 1.
    pub run: usize,
    /// The error, with the end of the output.
    pub text: String,
}

/// A metric of A, compared with another configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct AbMetric {
    pub name: String,
    /// Index of the metric in [`AbRun::values`].
    pub place: usize,
    /// The configuration compared with A.
    pub side: AbSide,
    /// Means of A and of `side`.
    pub means: [f64; 2],
    /// Standard deviations; `None` for fewer than two runs.
    pub deviations: [Option<f64>; 2],
    /// Comparison of `side` with A, block by block; `None` for fewer than two blocks.
    pub change: Option<Comparison>,
    /// P-value, adjusted for the number of comparisons.
    pub p_adjusted: Option<f64>,
    /// Relative growth from the first block to the last, over both configurations; `None` if it is not
    /// significant.
    pub drift: Option<f64>,
    /// Outliers, as indexes into [`Ab::runs`]: of `side`, and in the first comparison also of A. They stay in all
    /// statistics.
    pub outliers: Vec<usize>,
}

impl AbMetric {
    /// Whether the adjusted p-value is below `ALPHA`.
    #[must_use]
    pub fn is_significant(&self) -> bool {
        self.p_adjusted.is_some_and(|p| p < ALPHA)
    }

    #[must_use]
    pub fn is_time(&self) -> bool {
        self.name.ends_with("_ns")
    }
}

/// An experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Ab {
    /// Each metric once for each configuration except A.
    pub metrics: Vec<AbMetric>,
    /// Number of configurations.
    pub sides: usize,
    /// All runs, in the order of execution.
    pub runs: Vec<AbRun>,
    /// The experiment was interrupted.
    pub is_interrupted: bool,
    /// The failed run that ended the experiment, and its error.
    pub ended_by: Option<String>,
    /// Failed runs, if the experiment continues after failures.
    pub failures: Vec<AbFailure>,
}

impl Ab {
    /// Number of complete blocks.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.runs.len() / self.sides.max(1)
    }

    /// All comparisons of the metric with this index in [`AbRun::values`].
    pub fn comparisons(&self, place: usize) -> impl Iterator<Item = &AbMetric> {
        self.metrics.iter().filter(move |metric| metric.place == place)
    }
}

/// Compares `sides` configurations; each block of `runs` has one run of each.
#[must_use]
pub fn ab(names: &[String], runs: Vec<AbRun>, sides: usize) -> Ab {
    let others = || AbSide::first(sides).skip(1);
    let of_name = |(place, name): (usize, &String)| {
        others().map(|side| metric(name, (place, side), &runs)).collect::<Vec<_>>()
    };
    let mut metrics: Vec<AbMetric> = names.iter().enumerate().flat_map(of_name).collect();
    let p = |metric: &AbMetric| metric.change.as_ref().map(|change| change.p);
    let all: Vec<f64> = metrics.iter().filter_map(p).collect();
    let mut adjusted = benjamini_hochberg(&all).into_iter();
    for metric in metrics.iter_mut().filter(|metric| metric.change.is_some()) {
        metric.p_adjusted = adjusted.next();
    }
    let (ended_by, failures) = (None, Vec::new());
    Ab { metrics, sides, runs, is_interrupted: false, ended_by, failures }
}

fn metric(name: &str, (place, other): (usize, AbSide), runs: &[AbRun]) -> AbMetric {
    let value = |run: &AbRun| run.values.get(place).copied().unwrap_or(0.0);
    let values_of = |side: AbSide| {
        let side_runs = runs.iter().enumerate().filter(move |(_, run)| run.side == side);
        side_runs.map(|(place, run)| (place, value(run))).collect::<Vec<_>>()
    };
    let sides = [values_of(AbSide::A), values_of(other)];
    let values =
        sides.each_ref().map(|side| side.iter().map(|(_, value)| *value).collect::<Vec<_>>());
    let pairs: Vec<(f64, f64)> = runs
        .chunk_by(|run, other| run.block == other.block)
        .filter_map(|block| {
            let value_of = |side| block.iter().find(|run| run.side == side).map(value);
            Some((value_of(AbSide::A)?, value_of(other)?))
        })
        .collect();
    // Only the first comparison lists A's outliers.
    let shown = if other == AbSide::B { &sides[..] } else { &sides[1..] };
    let mut outliers: Vec<usize> = shown.iter().flat_map(|side| outliers(side)).collect();
    outliers.sort_unstable();
    AbMetric {
        name: name.to_owned(),
        place,
        side: other,
        means: values.each_ref().map(|values| mean(values).unwrap_or(0.0)),
        deviations: values.each_ref().map(|values| standard_deviation(values)),
        change: compare_pairs(&pairs, ALPHA),
        p_adjusted: None,
        drift: drift(&pairs),
        outliers,
    }
}

/// Indexes of outliers, by the median absolute deviation.
fn outliers(values: &[(usize, f64)]) -> Vec<usize> {
    let mut all: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
    let Some(middle) = median(&mut all) else { return Vec::new() };
    all.iter_mut().for_each(|value| *value = (*value - middle).abs());
    let deviation = median(&mut all).unwrap_or(0.0);
    let far = FAR * NORMAL * deviation;
    let is_far = |value: f64| far > 0.0 && (value - middle).abs() > far;
    values.iter().filter(|(_, value)| is_far(*value)).map(|(place, _)| *place).collect()
}

/// Growth over all blocks, relative to their mean.
fn drift(pairs: &[(f64, f64)]) -> Option<f64> {
    let blocks: Vec<f64> = pairs.iter().map(|(a, b)| f64::midpoint(*a, *b)).collect();
    let (slope, p) = trend(&blocks)?;
    let overall_mean = mean(&blocks).filter(|mean| *mean != 0.0)?;
    (p < ALPHA).then(|| slope * (blocks.len() as f64 - 1.0) / overall_mean)
}
