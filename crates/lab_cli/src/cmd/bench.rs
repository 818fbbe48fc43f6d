//! `hyperscope bench`: measurements in a new lab, or on this system.

mod advice;
mod tracers;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use experiment::bench::channels::{ChannelsPlan, Variant};
use experiment::bench::{ExitKind, ExitSource, exits};
use lab::{Cache, Description, Lab, Step, UpOptions};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::args::bench::{BenchArgs, BenchChannelsArgs, BenchExitsArgs, BenchVerb};
use crate::cmd::lab::interrupted;
use crate::lab_steps::LabSteps;
use command::output;
use command::verb::{Memory, Range, VerbArgs};

impl VerbArgs for BenchArgs {
    fn memory(&self) -> Memory {
        Memory::Unbounded
    }

    fn range(&self) -> Range {
        Range::Whole
    }

    fn run(&self) -> anyhow::Result<ExitCode> {
        run(self).map(|()| ExitCode::SUCCESS)
    }
}

/// Runs the verb.
///
/// # Errors
/// When the lab is not available, or something in it fails.
fn run(args: &BenchArgs) -> anyhow::Result<()> {
    match &args.verb {
        BenchVerb::Advice(args) => advice::run(args),
        BenchVerb::Channels(args) => channels(args),
        BenchVerb::Exits(args) => exits(args),
        BenchVerb::Tracers(args) => tracers::run(args),
    }
}

fn channels(args: &BenchChannelsArgs) -> anyhow::Result<()> {
    let out = output::open(args.output.output.as_deref(), [])?;
    let plan = plan(args);
    let description = experiment::bench::channels::description(&plan);
    let options = experiment::bench::up_options(plan.counts_instructions, args.offline);
    let outcome = in_lab(&description, &options, |lab, report| {
        experiment::bench::channels::run(&plan, lab, report)
    })?;
    output::write(&outcome, &args.output, out)
}

fn exits(args: &BenchExitsArgs) -> anyhow::Result<()> {
    let out = output::open(args.output.output.as_deref(), [])?;
    let plan = exits_plan(args);
    let outcome = if args.lab {
        let options = experiment::bench::up_options(plan.counts_instructions, args.offline);
        in_lab(&exits::description(&plan), &options, |lab, report| {
            exits::run_in_lab(&plan, lab, report)
        })?
    } else {
        let stop = Arc::new(AtomicBool::new(false));
        if plan.ablation.is_some() {
            // An interruption must restore changed settings.
            for signal in [SIGINT, SIGTERM, SIGHUP] {
                signal_hook::flag::register(signal, Arc::clone(&stop))?;
            }
        }
        let way = if args.vm { ExitSource::Vm } else { ExitSource::Guest };
        exits::run_here(&plan, way, &stop)?
    };
    output::write(&outcome, &args.output, out)
}

/// The default kinds of an ablation.
const ABLATED: [ExitKind; 5] = [
    ExitKind::Hypercall,
    ExitKind::PortKernel,
    ExitKind::KickPort,
    ExitKind::Send,
    ExitKind::HltWake,
];

fn exits_plan(args: &BenchExitsArgs) -> exits::ExitsPlan {
    let usual = |kind: &ExitKind| args.ablate.is_none() || ABLATED.contains(kind);
    let is_requested = |kind: &ExitKind| args.kinds.iter().any(|name| name == kind.name());
    let wanted =
        |kind: &ExitKind| if args.kinds.is_empty() { usual(kind) } else { is_requested(kind) };
    let ablation = args.ablate.as_ref().map(|toggles| exits::Ablation {
        toggles: toggles.concat(),
        is_cumulative: args.cumulative,
        operations: args.operations,
        seed: args.seed.unwrap_or_else(now),
        counts_exits: args.count_exits,
    });
    exits::ExitsPlan {
        kinds: ExitKind::ALL.into_iter().filter(wanted).collect(),
        runs: args.runs,
        run: Duration::from_millis(args.run_ms),
        levels: args.levels,
        counts_instructions: args.count_instructions,
        ablation,
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_secs())
}

/// Measures in a lab that is brought up for it, and ended afterwards.
fn in_lab<T>(
    description: &Description,
    options: &UpOptions,
    measure: impl FnOnce(&Lab, &dyn Fn(String)) -> experiment::bench::Result<T>,
) -> anyhow::Result<T> {
    let cache = Cache::locate(None)?;
    let lab = Lab::named(&cache, &format!("bench-{}", std::process::id()))?;
    let guard = interrupted::end_when_interrupted(&lab)?;
    let steps = LabSteps::new();
    let report = |text: String| steps.show(&Step { text, usual: None });
    let outcome = lab
        .up(description, options, &|step| steps.show(&step))
        .map_err(experiment::bench::BenchError::from)
        .and_then(|_| measure(&lab, &report));
    steps.finish();
    drop(guard);
    lab.down()?;
    Ok(outcome?)
}

fn plan(args: &BenchChannelsArgs) -> ChannelsPlan {
    let is_requested = |variant: &Variant| {
        args.channels.is_empty() || args.channels.iter().any(|name| name == variant.name())
    };
    ChannelsPlan {
        variants: Variant::ALL.into_iter().filter(is_requested).collect(),
        rounds: args.rounds,
        time: Duration::from_secs(args.seconds),
        rate: args.rate,
        seed: args.seed.unwrap_or_else(now),
        with_search: !args.no_search,
        buffer_kib: args.buffer,
        counts_instructions: args.count_instructions,
    }
}
