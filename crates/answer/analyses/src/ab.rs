//! Whether a workload runs otherwise under some configurations than under a first one, by runs of all in blocks.

use stats::{
    Comparison, benjamini_hochberg, compare_pairs, mean, median, standard_deviation, trend,
};

/// Significance level of reported changes.
const ALPHA: f64 = 0.05;

/// A number is an outlier if it is further from the median than this many median deviations.
const FAR: f64 = 5.0;

/// What makes the median of deviations a standard deviation, where numbers are normally distributed.
const NORMAL: f64 = 1.4826;

/// Configurations of one experiment, at most.
pub const MAX_SIDES: usize = NAMES.len();

/// Their names in documents, and for setups.
const NAMES: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];

/// Which configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AbSide(u8);

impl AbSide {
    /// The first one, with which all others are compared.
    pub const A: Self = Self(0);
    /// The second one.
    pub const B: Self = Self(1);

    /// The first ones, as many as asked for.
    pub fn first(sides: usize) -> impl Iterator<Item = Self> {
        (0..sides.min(MAX_SIDES)).map(|place| Self(place as u8))
    }

    /// Its place, from 0.
    #[must_use]
    pub const fn place(self) -> usize {
        self.0 as usize
    }

    /// Its name in documents, and for setups.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES.get(self.place()).copied().unwrap_or("?")
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

/// A run that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbFailure {
    /// Its configuration.
    pub side: AbSide,
    /// Its block, from 1; 0 while it warmed up.
    pub block: usize,
    /// Which run it was, from 1.
    pub run: usize,
    /// How it failed, with the end of what it printed.
    pub text: String,
}

/// A metric under A and one other configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct AbMetric {
    pub name: String,
    /// Its place among the values of a run.
    pub place: usize,
    /// The configuration that is compared with A.
    pub side: AbSide,
    /// Means under A and the other one.
    pub means: [f64; 2],
    /// Standard deviations; `None` of less than two runs.
    pub deviations: [Option<f64>; 2],
    /// How the other one relates to A, by blocks; `None` of less than two blocks.
    pub change: Option<Comparison>,
    /// The chance of a change that great where there is none, adjusted for the number of comparisons.
    pub p_adjusted: Option<f64>,
    /// How much it grew from the first run to the last, of both configurations, as a share; only where that is
    /// hardly chance.
    pub drift: Option<f64>,
    /// Runs of the other configuration, and in the first comparison of A's, by their place in [`Ab::runs`], that are far
    /// from others of their configuration. They count.
    pub outliers: Vec<usize>,
}

impl AbMetric {
    /// Whether the other configuration differs from A, chance aside.
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
    /// What was measured: each metric once for each configuration but A.
    pub metrics: Vec<AbMetric>,
    /// Configurations.
    pub sides: usize,
    /// All runs in the order in which they ran.
    pub runs: Vec<AbRun>,
    /// It ended before it was done.
    pub is_interrupted: bool,
    /// The run that failed, and how, where it ended because of that.
    pub ended_by: Option<String>,
    /// Runs that failed, where that is ignored.
    pub failures: Vec<AbFailure>,
}

impl Ab {
    /// Blocks that are whole.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.runs.len() / self.sides.max(1)
    }

    /// The comparisons of the metric at that place among the values of a run.
    pub fn comparisons(&self, place: usize) -> impl Iterator<Item = &AbMetric> {
        self.metrics.iter().filter(move |metric| metric.place == place)
    }
}

/// Compares runs of that number of configurations, of which each block has one each.
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
    // A's are those of the first comparison.
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

/// The places of values that are far from the others, by the median and the median of deviations from it.
fn outliers(values: &[(usize, f64)]) -> Vec<usize> {
    let mut all: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
    let Some(middle) = median(&mut all) else { return Vec::new() };
    all.iter_mut().for_each(|value| *value = (*value - middle).abs());
    let deviation = median(&mut all).unwrap_or(0.0);
    let far = FAR * NORMAL * deviation;
    let is_far = |value: f64| far > 0.0 && (value - middle).abs() > far;
    values.iter().filter(|(_, value)| is_far(*value)).map(|(place, _)| *place).collect()
}

/// By how much blocks as a whole grew, as a share of their mean.
fn drift(pairs: &[(f64, f64)]) -> Option<f64> {
    let blocks: Vec<f64> = pairs.iter().map(|(a, b)| f64::midpoint(*a, *b)).collect();
    let (slope, p) = trend(&blocks)?;
    let overall_mean = mean(&blocks).filter(|mean| *mean != 0.0)?;
    (p < ALPHA).then(|| slope * (blocks.len() as f64 - 1.0) / overall_mean)
}
