//! `hyperscope bench`: measurements in a lab of its own.

mod tracers;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bench::channels::{Plan, Variant};
use lab::{Cache, Lab, Step};

use crate::args::bench::{BenchArgs, BenchChannelsArgs, BenchVerb};
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
        BenchVerb::Tracers(args) => tracers::run(args),
    }
}

fn channels(args: &BenchChannelsArgs) -> anyhow::Result<()> {
    let mut out = output::open(args.output.output.as_deref(), &[])?;
    let plan = plan(args);
    let cache = Cache::locate(None)?;
    let lab = Lab::named(&cache, &format!("bench-{}", std::process::id()))?;
    let guard = interrupted::end_when_interrupted(&lab)?;
    let manner = bench::channels::manner(&plan, args.offline);
    let steps = LabSteps::new();
    let tell = |text: String| steps.show(&Step { text, usual: None });
    let outcome = lab
        .up(&bench::channels::description(&plan), &manner, &|step| steps.show(&step))
        .map_err(bench::BenchError::from)
        .and_then(|_| bench::channels::run(&plan, &lab, &tell));
    steps.finish();
    drop(guard);
    lab.down()?;
    output::write(&outcome?, &args.output, &mut *out)
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
