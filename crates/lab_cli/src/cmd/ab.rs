//! `hyperscope ab`: compares the runs of a workload under some configurations with those under a first one.

mod exit_metrics;
mod exits;
mod lab_toggle;
mod labs;
mod recordings;

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use analyses::ab::Ab;
use analyses::diff::Condition;
use anyhow::{Context, bail};
use experiment::{
    Configuration, Experiment, Limits, Metric, OWN_METRICS, Progress, Unwatched, Watch,
};
use printable::messages;
use report::AbReport;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use self::labs::Labs;
use self::recordings::{LabRecordings, Recordings};
use crate::args::ab::AbArgs;
use crate::args::lab_workload::LabWorkload;
use command::exit_codes::CONDITION_HOLDS;
use command::notice::say;
use command::output;
use command::verb::{Memory, Range, VerbArgs};
use session::Misuse;

impl VerbArgs for AbArgs {
    fn memory(&self) -> Memory {
        Memory::Unbounded
    }

    fn range(&self) -> Range {
        Range::Whole
    }

    fn run(&self) -> anyhow::Result<ExitCode> {
        run(self)
    }
}

fn run(args: &AbArgs) -> anyhow::Result<ExitCode> {
    check(args)?;
    let setups = args.setups()?;
    let out = output::open_page(args.output.output.as_deref(), args.output.is_page(), &[])?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("cannot handle signals")?;
    }
    let labs = if args.lab { Some(Labs::up(&setups, args.lab_workload, &stop)?) } else { None };
    let experiment = experiment(args, &setups, labs.as_ref())?;
    let mut watch = watch(args, labs.as_ref())?;
    let limits = Limits { timeout: args.timeout, stop: &stop };
    let ab = experiment::run(&experiment, limits, &begins, &mut *watch)?;
    let main_metric = if experiment.metrics.is_empty() { 0 } else { OWN_METRICS.len() };
    let workload = match args.lab_workload {
        Some(workload) => vec!["--lab-workload".to_owned(), workload.name()],
        None => args.workload.clone(),
    };
    let report = AbReport { setups, workload, seed: args.seed, ab, main_metric };
    if args.output.is_page() {
        output::write_page(&report.page(), out)?
    } else {
        output::write(&report, &args.output, out)?
    }
    if report.ab.is_interrupted {
        bail!("interrupted");
    }
    if let Some(failed) = &report.ab.ended_by {
        bail!("{failed}; use --ignore-failures to continue");
    }
    Ok(conclude(&report.ab, &args.fail_if))
}

/// The experiment of the arguments.
fn experiment(args: &AbArgs, setups: &[String], labs: Option<&Labs>) -> anyhow::Result<Experiment> {
    let of_setup = |setup: &String| Configuration { setup: setup.clone(), workload: None };
    Ok(Experiment {
        configurations: match labs {
            Some(labs) => labs.configurations(&args.workload),
            None => setups.iter().map(of_setup).collect(),
        },
        prepare: args.prepare.clone(),
        teardown: args.teardown.clone(),
        workload: args.workload.clone(),
        metrics: metrics(args)?,
        warmup: args.warmup as usize,
        stop: args.stop(),
        budget: args.budget(),
        seed: args.seed,
        ignores_failures: args.ignore_failures,
    })
}

/// The metrics in a run's output: the workload's own come first.
fn metrics(args: &AbArgs) -> anyhow::Result<Vec<Metric>> {
    let mut metrics = args.lab_workload.map_or_else(|| Ok(Vec::new()), LabWorkload::metrics)?;
    metrics.extend(args.metric.iter().cloned());
    Ok(metrics)
}

/// The counter of exits in each run, if any.
fn watch(args: &AbArgs, labs: Option<&Labs>) -> anyhow::Result<Box<dyn Watch>> {
    let vm = args.vm.as_deref();
    Ok(match (&args.record, labs) {
        (Some(folder), Some(labs)) => Box::new(LabRecordings::begin(folder, labs.all())?),
        (Some(folder), None) => Box::new(Recordings::begin(folder, vm, args.timeout)?),
        (None, Some(labs)) if args.exits => Box::new(labs.exits()?),
        (None, None) if args.exits => Box::new(exits::Exits::begin(vm)?),
        (None, _) => Box::new(Unwatched),
    })
}

/// Shows progress on a terminal.
fn begins(progress: Progress) {
    if console::user_attended_stderr() {
        match progress.block {
            0 => say("warming up"),
            block => say(&format!("block {block}")),
        }
    }
}

/// Reports a wrong name before anything runs.
fn check(args: &AbArgs) -> anyhow::Result<()> {
    let mut names = OWN_METRICS.map(str::to_owned).to_vec();
    for metric in &metrics(args)? {
        if names.contains(&metric.name) {
            bail!(Misuse(format!("two metrics have the name {}", metric.name)));
        }
        names.push(metric.name.clone());
    }
    if let Some(folder) = args.record.as_deref().filter(|folder| folder.exists()) {
        bail!("--record: the folder {} already exists", folder.display());
    }
    for condition in &args.fail_if {
        let counts_exits = args.exits || args.record.is_some();
        let is_there = names.iter().any(|name| is_about(condition, name))
            || counts_exits && is_counted(condition.metric());
        if !is_there || condition.report.is_some() || condition.reason.is_some() {
            let names = names.join(", ");
            let names = if counts_exits { names + ", and the metrics of --exits" } else { names };
            bail!(Misuse(format!(
                "--fail-if '{}': unknown metric; use one of {names}",
                condition.text
            )));
        }
    }
    Ok(())
}

/// Whether `--exits` may add a metric of this name: the reasons are known only at the end.
fn is_counted(name: &str) -> bool {
    let begins = ["exits", "exit_cost", "guest", "run_queue"];
    begins.iter().any(|begin| name.starts_with(begin))
}

fn is_about(condition: &Condition, name: &str) -> bool {
    condition.metric() == name || Some(condition.metric()) == name.strip_suffix("_ns")
}

/// Reports which conditions are true.
fn conclude(ab: &Ab, conditions: &[Condition]) -> ExitCode {
    let (mut code, mut err) = (ExitCode::SUCCESS, messages());
    for condition in conditions {
        // The reasons of --exits are known only now.
        if !ab.metrics.iter().any(|metric| is_about(condition, &metric.name)) {
            let _ = writeln!(err, "hyperscope: {}: no run has this metric", condition.text);
        }
        for metric in ab.metrics.iter().filter(|metric| is_about(condition, &metric.name)) {
            let [a, b] = metric.means;
            // The ratio comes from blocks, which outliers of single runs affect less than means.
            let ratio = metric
                .change
                .as_ref()
                .filter(|comparison| comparison.scale == analyses::diff::Scale::Ratio);
            let values = ratio.map_or((a, b), |change| (a, a * change.change));
            let values = if condition.is_on_change() { values } else { (a, b) };
            let Some(true) = condition.is_beyond_values(values, metric.is_time()) else { continue };
            let suffix = match ab.sides {
                ..=2 => String::new(),
                _ => format!(" in {}", metric.side.name().to_uppercase()),
            };
            if condition.is_on_change() && !metric.is_significant() {
                let _ = writeln!(
                    err,
                    "hyperscope: {}: exceeded{suffix}, but not significantly",
                    condition.text
                );
                continue;
            }
            let change = values.1 / values.0;
            let _ = writeln!(
                err,
                "hyperscope: {}: {} is {change:.3}x{suffix}",
                condition.text, metric.name
            );
            code = ExitCode::from(CONDITION_HOLDS);
        }
    }
    code
}
