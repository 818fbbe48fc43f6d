//! Block after block, each one run of every configuration in an order by chance, until there are enough.

use std::time::{Duration, Instant};

use analyses::ab::{Ab, AbRun, AbSide, ab};
use stats::Chance;

use crate::command::{self, CommandError, Limits};
use crate::metric::{Metric, MetricError};
use crate::watch::{RunOf, Watch, Watched, all_metrics};

/// Blocks before an interval is trusted to be narrow.
const LEAST_BLOCKS: usize = 6;

/// Blocks of one experiment.
const MOST_BLOCKS: usize = 10_000;

/// One of the configurations.
#[derive(Clone, Debug, Default)]
pub struct Configuration {
    /// A line for the shell that sets it up before each of its runs.
    pub setup: String,
    /// What is timed of it, where that is not the experiment's.
    pub workload: Option<Vec<String>>,
}

/// When there are enough blocks.
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
    /// A, and those that are compared with it: [`analyses::ab::MOST_SIDES`] of all at most.
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
    /// When to stop.
    pub stop: Stop,
    /// No block begins later than this after the first one.
    pub budget: Option<Duration>,
    /// What the order is drawn from.
    pub seed: u64,
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
    /// A metric was not found.
    #[error(transparent)]
    Metric(#[from] MetricError),
    /// What happens while a workload runs can't be counted.
    #[error("what happens meanwhile can't be counted: {0}")]
    Watch(#[source] std::io::Error),
}

impl ExperimentError {
    /// A signal ended it.
    #[must_use]
    pub const fn is_interrupted(&self) -> bool {
        matches!(self, Self::Command(_, CommandError::Interrupted))
    }
}

/// Names of the metrics that every workload has, which come before its own.
pub const OWN_METRICS: [&str; 3] = ["wall_ns", "user_ns", "sys_ns"];

/// Runs it. `begins` hears of each block, `watch` counts what happens while workloads run; what a signal interrupts ends with what is whole so far, if
/// that is two blocks at least.
///
/// # Errors
/// When a command fails or takes too long, or a metric is not there.
pub fn run(
    experiment: &Experiment,
    limits: Limits<'_>,
    begins: &dyn Fn(Progress),
    watch: &mut dyn Watch,
) -> Result<Ab, ExperimentError> {
    let names = OWN_METRICS.map(str::to_owned).into_iter();
    let names: Vec<String> =
        names.chain(experiment.metrics.iter().map(|one| one.name.clone())).collect();
    let found = |runs: &[Watched]| {
        let (names, runs) = all_metrics(&names, runs);
        ab(&names, runs, experiment.configurations.len())
    };
    let (mut chance, mut runs) = (Chance::new(experiment.seed), Vec::new());
    let begun = Instant::now();
    let most = match experiment.stop {
        Stop::Blocks(blocks) => blocks.min(MOST_BLOCKS),
        Stop::Width(_) => MOST_BLOCKS,
    };
    for block in 0..experiment.warmup + most {
        let is_warm = block >= experiment.warmup;
        let counted = (block + 1).saturating_sub(experiment.warmup);
        if counted > 1 && experiment.budget.is_some_and(|budget| begun.elapsed() >= budget) {
            break;
        }
        begins(Progress { block: counted });
        match one_block(experiment, limits, &mut chance, counted, watch) {
            Ok(all) if is_warm => runs.extend(all),
            Ok(_) => {}
            Err(error)
                if error.is_interrupted() && runs.len() >= 2 * experiment.configurations.len() =>
            {
                return Ok(Ab { is_interrupted: true, ..found(&runs) });
            }
            Err(error) => return Err(error),
        }
        if counted >= LEAST_BLOCKS
            && let Stop::Width(width) = experiment.stop
            && is_narrow(&found(&runs), experiment.metrics.len(), width)
        {
            break;
        }
    }
    Ok(found(&runs))
}

/// Whether all intervals of the workload's first own metric, or of its time, are narrow enough.
fn is_narrow(found: &Ab, own: usize, width: f64) -> bool {
    let first = if own > 0 { OWN_METRICS.len() } else { 0 };
    found.comparisons(first).all(|metric| {
        let change = metric.change.as_ref();
        change.is_some_and(|change| (change.high / change.low).sqrt() - 1.0 <= width)
    })
}

fn one_block(
    experiment: &Experiment,
    limits: Limits<'_>,
    chance: &mut Chance,
    block: usize,
    watch: &mut dyn Watch,
) -> Result<Vec<Watched>, ExperimentError> {
    let mut order: Vec<AbSide> = AbSide::first(experiment.configurations.len()).collect();
    chance.shuffle(&mut order);
    order.into_iter().map(|side| one_run(experiment, limits, (side, block), watch)).collect()
}

fn one_run(
    experiment: &Experiment,
    limits: Limits<'_>,
    (side, block): (AbSide, usize),
    watch: &mut dyn Watch,
) -> Result<Watched, ExperimentError> {
    let variables = [("HYPERSCOPE_SIDE", side.name())];
    let configuration = experiment.configurations.get(side.place());
    let setup = configuration.map_or("", |configuration| configuration.setup.as_str());
    let step = |what: &'static str, line: &str, limits: Limits<'_>| match line.trim() {
        "" => Ok(()),
        line => command::run(&[line.to_owned()], &variables, limits, false)
            .map(|_| ())
            .map_err(|error| ExperimentError::Command(what, error)),
    };
    let mut counts = Vec::new();
    let mut run = || {
        step("setup", setup, limits)?;
        step("prepare", experiment.prepare.as_deref().unwrap_or(""), limits)?;
        let reads = !experiment.metrics.is_empty();
        watch.begin(RunOf { side, block }).map_err(ExperimentError::Watch)?;
        let own = configuration.and_then(|configuration| configuration.workload.as_ref());
        let workload = own.unwrap_or(&experiment.workload);
        let done = command::run(workload, &variables, limits, reads);
        counts = watch.end().map_err(ExperimentError::Watch)?;
        done.map_err(|error| ExperimentError::Command("workload", error))
    };
    let done = run();
    // What was set up is taken back whatever happened, also after a signal.
    let go_on = std::sync::atomic::AtomicBool::new(false);
    let after = Limits { stop: &go_on, ..limits };
    let torn_down = step("teardown", experiment.teardown.as_deref().unwrap_or(""), after);
    let done = done?;
    torn_down?;
    let own = [done.wall_ns, done.user_ns, done.sys_ns].map(|ns| ns as f64);
    let mut values = own.to_vec();
    for metric in &experiment.metrics {
        values.push(metric.find(&done.output)?);
    }
    Ok(Watched { run: AbRun { side, block, values }, counts })
}
