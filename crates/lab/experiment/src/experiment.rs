//! Runs blocks, each one run of every configuration in random order, until there are enough.

use std::fmt;
use std::time::{Duration, Instant};

use analyses::ab::{Ab, AbFailure, AbRun, AbSide, ab};
use stats::Chance;

use crate::command::{self, CommandError, Limits};
use crate::metric::{Metric, MetricError};
use crate::watch::{RunOf, Watch, Watched, all_metrics};

/// Min blocks before a narrow interval is trusted.
const MIN_BLOCKS: usize = 6;

/// Max blocks of an experiment.
const MAX_BLOCKS: usize = 10_000;

#[derive(Clone, Debug, Default)]
pub struct Configuration {
    /// A shell command before each of its runs.
    pub setup: String,
    /// Its timed workload, if it differs from the experiment's.
    pub workload: Option<Vec<String>>,
}

/// When to stop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stop {
    /// After this many blocks.
    Blocks(usize),
    /// When the interval of the first metric extends at most this share from its middle.
    Width(f64),
}

/// The experiment.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// A, and the configurations to compare with it: at most [`analyses::ab::MAX_SIDES`] in total.
    pub configurations: Vec<Configuration>,
    /// A shell command before each run, after the setup; not timed.
    pub prepare: Option<String>,
    /// A shell command after each run.
    pub teardown: Option<String>,
    /// The timed workload: a program with its arguments, or one shell command.
    pub workload: Vec<String>,
    /// Metrics in its output, besides its times.
    pub metrics: Vec<Metric>,
    /// Number of initial blocks that don't count.
    pub warmup: usize,
    pub stop: Stop,
    /// Max time after the first block at which a block may begin.
    pub budget: Option<Duration>,
    /// Seed of the order.
    pub seed: u64,
    /// Count failed runs of a workload like others; blocks in which a run has no result are dropped.
    pub ignores_failures: bool,
}

/// Progress of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The block, from 1; 0 during the warm-up.
    pub block: usize,
}

/// Why an experiment has no result.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// A command failed.
    #[error("{0}: {1}")]
    Command(&'static str, CommandError),
    /// A metric was not found in a run with this output.
    #[error("{0}{1}")]
    Metric(MetricError, String),
    /// This many runs failed, and no block was complete; with the first failure.
    #[error("no block was complete: {0} runs failed; the first failure: {1}")]
    NoResult(usize, String),
    /// The run of the error.
    #[error("{0}: {1}")]
    Run(RunPlace, Box<Self>),
    /// Counting events during a workload failed.
    #[error("cannot count exits during runs: {0}")]
    Watch(#[source] std::io::Error),
}

impl ExperimentError {
    /// Whether a signal ended it.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        match self {
            Self::Run(_, error) => error.is_interrupted(),
            error => matches!(error, Self::Command(_, CommandError::Interrupted)),
        }
    }

    /// Whether the workload's behaviour or output caused it, so that another run may succeed.
    fn is_of_workload(&self) -> bool {
        match self {
            Self::Metric(..) => true,
            Self::Command(what, error) => {
                *what == WORKLOAD
                    && matches!(error, CommandError::Failed(..) | CommandError::TimedOut(..))
            }
            _ => false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunPlace {
    /// Its configuration.
    pub side: AbSide,
    /// Its block, from 1; 0 during the warm-up.
    pub block: usize,
    /// Its number among all counted runs, from 1; during the warm-up, among those.
    pub run: usize,
}

impl fmt::Display for RunPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = self.side.name().to_uppercase();
        match self.block {
            0 => write!(f, "warm-up run {} ({side})", self.run),
            block => write!(f, "run {} ({side}, block {block})", self.run),
        }
    }
}

/// Name of the timed command in messages.
const WORKLOAD: &str = "workload";

/// Names of the metrics that every workload has, before its own.
pub const OWN_METRICS: [&str; 3] = ["wall_ns", "user_ns", "sys_ns"];

/// Runs the experiment. Calls `begins` at each block; `watch` counts events while workloads run. After a signal or a
/// failed run, the result has the complete blocks so far, if there are any.
///
/// # Errors
/// When a command fails or times out, or a metric is missing, and no block was complete before.
pub fn run(
    experiment: &Experiment,
    limits: Limits<'_>,
    begins: &dyn Fn(Progress),
    watch: &mut dyn Watch,
) -> Result<Ab, ExperimentError> {
    let mut blocks = Blocks::new(experiment);
    let start = Instant::now();
    let max = match experiment.stop {
        Stop::Blocks(blocks) => blocks.min(MAX_BLOCKS),
        Stop::Width(_) => MAX_BLOCKS,
    };
    for block in 0..experiment.warmup + max {
        let counted = (block + 1).saturating_sub(experiment.warmup);
        if counted > 1 && experiment.budget.is_some_and(|budget| start.elapsed() >= budget) {
            break;
        }
        begins(Progress { block: counted });
        if let Err(error) = blocks.run(limits, counted, watch) {
            if blocks.runs.is_empty() {
                return Err(error);
            }
            return Ok(blocks.ended_by(&error));
        }
        if counted >= MIN_BLOCKS
            && let Stop::Width(width) = experiment.stop
            && is_narrow(&blocks.found(), experiment.metrics.len(), width)
        {
            break;
        }
    }
    blocks.finish()
}

/// The runs so far.
struct Blocks<'e> {
    experiment: &'e Experiment,
    chance: Chance,
    /// Runs of complete blocks.
    runs: Vec<Watched>,
    failures: Vec<AbFailure>,
    /// Number of started runs: during the warm-up, and all others.
    runs_started: [usize; 2],
}

impl<'e> Blocks<'e> {
    fn new(experiment: &'e Experiment) -> Self {
        let chance = Chance::new(experiment.seed);
        Self { experiment, chance, runs: Vec::new(), failures: Vec::new(), runs_started: [0; 2] }
    }

    fn found(&self) -> Ab {
        let names = OWN_METRICS.map(str::to_owned).into_iter();
        let metrics = self.experiment.metrics.iter();
        let names: Vec<String> = names.chain(metrics.map(|metric| metric.name.clone())).collect();
        let (names, runs) = all_metrics(&names, &self.runs);
        let found = ab(&names, runs, self.experiment.configurations.len());
        Ab { failures: self.failures.clone(), ..found }
    }

    fn ended_by(&self, error: &ExperimentError) -> Ab {
        let is_interrupted = error.is_interrupted();
        let ended_by = (!is_interrupted).then(|| error.to_string());
        Ab { is_interrupted, ended_by, ..self.found() }
    }

    fn finish(self) -> Result<Ab, ExperimentError> {
        match self.failures.first() {
            Some(first) if self.runs.is_empty() => {
                Err(ExperimentError::NoResult(self.failures.len(), first.text.clone()))
            }
            _ => Ok(self.found()),
        }
    }

    /// Runs a block: one run of each configuration, in random order.
    fn run(
        &mut self,
        limits: Limits<'_>,
        block: usize,
        watch: &mut dyn Watch,
    ) -> Result<(), ExperimentError> {
        let sides = self.experiment.configurations.len();
        let mut order: Vec<AbSide> = AbSide::first(sides).collect();
        self.chance.shuffle(&mut order);
        let mut runs = Vec::with_capacity(sides);
        for side in order {
            let [warm, counted] = &mut self.runs_started;
            let count = if block == 0 { warm } else { counted };
            *count += 1;
            let place = RunPlace { side, block, run: *count };
            match one_run(self.experiment, limits, place, watch) {
                Ok(done) => {
                    self.failures.extend(done.failure.map(|text| failure(place, text)));
                    runs.push(done.watched);
                }
                Err(error) if self.experiment.ignores_failures && error.is_of_workload() => {
                    self.failures.push(failure(place, error.to_string()));
                }
                Err(error) => return Err(ExperimentError::Run(place, Box::new(error))),
            }
        }
        if block > 0 && runs.len() == sides {
            self.runs.extend(runs);
        }
        Ok(())
    }
}

fn failure(place: RunPlace, text: String) -> AbFailure {
    let RunPlace { side, block, run } = place;
    AbFailure { side, block, run, text }
}

/// Whether all intervals of the workload's first own metric, or of its time, are narrow enough.
fn is_narrow(found: &Ab, metric_count: usize, width: f64) -> bool {
    let first = if metric_count > 0 { OWN_METRICS.len() } else { 0 };
    found.comparisons(first).all(|metric| {
        let change = metric.change.as_ref();
        change.is_some_and(|change| (change.high / change.low).sqrt() - 1.0 <= width)
    })
}

/// A run with a result.
struct Ran {
    watched: Watched,
    /// Its ignored failure.
    failure: Option<String>,
}

fn one_run(
    experiment: &Experiment,
    limits: Limits<'_>,
    place: RunPlace,
    watch: &mut dyn Watch,
) -> Result<Ran, ExperimentError> {
    let RunPlace { side, block, .. } = place;
    let variables = [("HYPERSCOPE_SIDE", side.name())];
    let configuration = experiment.configurations.get(side.place());
    let setup = configuration.map_or("", |configuration| configuration.setup.as_str());
    let step = |what: &'static str, line: &str, limits: Limits<'_>| match line.trim() {
        "" => Ok(()),
        line => {
            let ran = command::run(&[line.to_owned()], &variables, limits, false);
            let failed = ran.and_then(|done| done.failure().map_or(Ok(()), Err));
            failed.map_err(|error| ExperimentError::Command(what, error))
        }
    };
    let mut counts = Vec::new();
    let mut run = || {
        step("setup", setup, limits)?;
        step("prepare", experiment.prepare.as_deref().unwrap_or(""), limits)?;
        let reads = !experiment.metrics.is_empty();
        watch.begin(RunOf { side, block }).map_err(ExperimentError::Watch)?;
        let side_workload = configuration.and_then(|configuration| configuration.workload.as_ref());
        let workload = side_workload.unwrap_or(&experiment.workload);
        let done = command::run(workload, &variables, limits, reads);
        counts = watch.end().map_err(ExperimentError::Watch)?;
        done.map_err(|error| ExperimentError::Command(WORKLOAD, error))
    };
    let done = run();
    // Undoes the setup in any case, even after a signal.
    let go_on = std::sync::atomic::AtomicBool::new(false);
    let after = Limits { stop: &go_on, ..limits };
    let torn_down = step("teardown", experiment.teardown.as_deref().unwrap_or(""), after);
    let done = done?;
    torn_down?;
    let failure = done.failure().map(|error| ExperimentError::Command(WORKLOAD, error));
    let failure = match failure {
        Some(error) if !experiment.ignores_failures => return Err(error),
        failure => failure.map(|error| error.to_string()),
    };
    let times_ns = [done.wall_ns, done.user_ns, done.sys_ns].map(|ns| ns as f64);
    let mut values = times_ns.to_vec();
    for metric in &experiment.metrics {
        let found = metric.find(&done.output);
        values.push(found.map_err(|error| ExperimentError::Metric(error, done.output_end()))?);
    }
    Ok(Ran { watched: Watched { run: AbRun { side, block, values }, counts }, failure })
}
