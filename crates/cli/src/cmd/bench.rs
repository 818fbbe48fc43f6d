//! `hyperscope bench`: measurements in a lab of its own, or here.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bench::channels::{Plan, Variant};
use bench::{ExitKind, Way, exits};
use lab::{Cache, Description, Lab, Manner, Step};

use crate::args::bench::{BenchArgs, BenchChannelsArgs, BenchExitsArgs, BenchVerb};
use crate::cmd::lab::interrupted;
use crate::lab_steps::LabSteps;
use crate::output;

/// Runs the verb.
///
/// # Errors
/// When the lab can't be had, or something in it fails.
pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<()> {
    match &args.verb {
        BenchVerb::Channels(args) => channels(args),
        BenchVerb::Exits(args) => exits(args),
    }
}

fn channels(args: &BenchChannelsArgs) -> anyhow::Result<()> {
    let mut out = output::open(args.output.output.as_deref(), &[])?;
    let plan = plan(args);
    let description = bench::channels::description(&plan);
    let manner = bench::channels::manner(&plan, args.offline);
    let outcome =
        in_lab(&description, &manner, |lab, tell| bench::channels::run(&plan, lab, tell))?;
    output::write(&outcome, &args.output, &mut *out)
}

fn exits(args: &BenchExitsArgs) -> anyhow::Result<()> {
    let mut out = output::open(args.output.output.as_deref(), &[])?;
    let asked = |kind: &ExitKind| {
        args.kinds.is_empty() || args.kinds.iter().any(|name| name == kind.name())
    };
    let plan = exits::Plan {
        kinds: ExitKind::ALL.into_iter().filter(asked).collect(),
        runs: args.runs,
        run: Duration::from_millis(args.run_ms),
        levels: args.levels,
        counts_instructions: args.count_instructions,
    };
    let outcome = if args.lab {
        let manner = exits::manner(&plan, args.offline);
        in_lab(&exits::description(&plan), &manner, |lab, tell| {
            exits::run_in_lab(&plan, lab, tell)
        })?
    } else {
        exits::run_here(&plan, if args.vm { Way::Vm } else { Way::Guest })?
    };
    output::write(&outcome, &args.output, &mut *out)
}

/// Measures in a lab that is brought up for it, and is gone afterwards.
fn in_lab<T>(
    description: &Description,
    manner: &Manner,
    measure: impl FnOnce(&Lab, &dyn Fn(String)) -> bench::Result<T>,
) -> anyhow::Result<T> {
    let cache = Cache::locate(None)?;
    let lab = Lab::named(&cache, &format!("bench-{}", std::process::id()))?;
    let guard = interrupted::end_when_interrupted(&lab)?;
    let steps = LabSteps::new();
    let tell = |text: String| steps.show(&Step { text, usual: None });
    let outcome = lab
        .up(description, manner, &|step| steps.show(&step))
        .map_err(bench::BenchError::from)
        .and_then(|_| measure(&lab, &tell));
    steps.finish();
    drop(guard);
    lab.down()?;
    Ok(outcome?)
}

fn plan(args: &BenchChannelsArgs) -> Plan {
    let asked = |variant: &Variant| {
        args.channels.is_empty() || args.channels.iter().any(|name| name == variant.name())
    };
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_secs());
    Plan {
        variants: Variant::ALL.into_iter().filter(asked).collect(),
        rounds: args.rounds,
        time: Duration::from_secs(args.seconds),
        rate: args.rate,
        seed: args.seed.unwrap_or_else(now),
        with_search: !args.no_search,
        buffer_kib: args.buffer,
        counts_instructions: args.count_instructions,
    }
}
