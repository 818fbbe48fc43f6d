//! Block after block, each one run of every configuration in an order by chance, until there are enough.

use std::fmt;
use std::time::{Duration, Instant};

use analyses::ab::{Ab, AbFailure, AbRun, AbSide, ab};
use stats::Chance;

use crate::command::{self, CommandError, Limits};
use crate::metric::{Metric, MetricError};
use crate::watch::{RunOf, Watch, Watched, all_metrics};

/// Blocks before an interval is trusted to be narrow.
const MIN_BLOCKS: usize = 6;

/// Blocks of one experiment.
const MAX_BLOCKS: usize = 10_000;

#[derive(Clone, Debug, Default)]
pub struct Configuration {
    /// A line for the shell that sets it up before each of its runs.
    pub setup: String,
    /// What is timed of it, where that is not the experiment's.
    pub workload: Option<Vec<String>>,
}

/// When to stop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stop {
    /// After this many.
    Blocks(usize),
    /// When the interval of the first metric reaches no further than this share from its middle.
    Width(f64),
}

/// What is to be run.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// A, and those that are compared with it: [`analyses::ab::MAX_SIDES`] of all at most.
    pub configurations: Vec<Configuration>,
    /// A line for the shell before each run, after the setup; not timed.
    pub prepare: Option<String>,
    /// One after each run.
    pub teardown: Option<String>,
    /// What is timed: a program with its arguments, or one line for the shell.
    pub workload: Vec<String>,
    /// What its output says, besides its times.
    pub metrics: Vec<Metric>,
    /// Blocks at the beginning that don't count.
    pub warmup: usize,
    pub stop: Stop,
    /// No block begins later than this after the first one.
    pub budget: Option<Duration>,
    /// What the order is drawn from.
    pub seed: u64,
    /// Runs of a workload that fail count as others do, and where one has no result, the blocks without it do.
    pub ignores_failures: bool,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The block, from 1; 0 while it warms up.
    pub block: usize,
}

/// Why an experiment has no result.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// A command failed.
    #[error("{0}: {1}")]
    Command(&'static str, CommandError),
    /// A metric was not found, in a run that printed this.
    #[error("{0}{1}")]
    Metric(MetricError, String),
    /// Runs failed, that many, and no block was whole; how the first of them failed.
    #[error("no block was complete: {0} runs failed; the first failure: {1}")]
    NoResult(usize, String),
    /// It was in this run.
    #[error("{0}: {1}")]
    Run(RunPlace, Box<Self>),
    /// What happens while a workload runs can't be counted.
    #[error("cannot count exits during runs: {0}")]
    Watch(#[source] std::io::Error),
}

impl ExperimentError {
    /// A signal ended it.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        match self {
            Self::Run(_, error) => error.is_interrupted(),
            error => matches!(error, Self::Command(_, CommandError::Interrupted)),
        }
    }

    /// It is of what a workload did or printed, so that another run of it may have a result.
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
    /// Its block, from 1; 0 while it warms up.
    pub block: usize,
    /// Which of all runs that count it was, from 1; of those that warm up, which of these.
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

/// What is timed, in messages.
const WORKLOAD: &str = "workload";

/// Names of the metrics that every workload has, which come before its own.
pub const OWN_METRICS: [&str; 3] = ["wall_ns", "user_ns", "sys_ns"];

/// Runs it. `begins` hears of each block, `watch` counts what happens while workloads run. What a signal interrupts, or a run
/// that fails, ends with the blocks that are whole so far, if there is one.
///
/// # Errors
/// When a command fails or takes too long, or a metric is not there, and no block was whole before.
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

/// What was run so far.
struct Blocks<'e> {
    experiment: &'e Experiment,
    chance: Chance,
    /// Of whole blocks.
    runs: Vec<Watched>,
    failures: Vec<AbFailure>,
    /// Runs that were begun: those that warm up, and all others.
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

    /// Runs a block: one run of each configuration, in an order by chance.
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

/// A run that has a result.
struct Ran {
    watched: Watched,
    /// It failed, and that is ignored.
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
    // What was set up is taken back whatever happened, also after a signal.
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
