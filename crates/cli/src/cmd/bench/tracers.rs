//! `hyperscope bench tracers`: what tracing a guest costs, by each tracer.

use std::time::{SystemTime, UNIX_EPOCH};

use bench::tracers::{Plan, Subject, Tracer};
use lab::{Cache, Lab, Step, Tool};

use crate::args::bench::{BenchTracersArgs, TracersTable};
use crate::cmd::lab::interrupted;
use crate::lab_steps::LabSteps;
use crate::output;

/// Measures, and prints what came of it.
///
/// # Errors
/// When the lab can't be had, or something in it fails.
pub(crate) fn run(args: &BenchTracersArgs) -> anyhow::Result<()> {
    let mut out = output::open(args.output.output.as_deref(), &[])?;
    let plan = plan(args);
    let cache = Cache::locate(None)?;
    let lab = Lab::named(&cache, &format!("bench-{}", std::process::id()))?;
    let guard = interrupted::end_when_interrupted(&lab)?;
    let manner = bench::tracers::manner(&plan, args.offline);
    let steps = LabSteps::new();
    let tell = |text: String| steps.show(&Step { text, usual: None });
    let outcome = lab
        .up(&bench::tracers::description(&plan), &manner, &|step| steps.show(&step))
        .map_err(bench::BenchError::from)
        .and_then(|_| bench::tracers::run(&plan, &lab, &tell));
    steps.finish();
    drop(guard);
    lab.down()?;
    output::write(&outcome?, &args.output, &mut *out)
}

fn plan(args: &BenchTracersArgs) -> Plan {
    let asked =
        |names: &[String], name: &str| names.is_empty() || names.iter().any(|one| one == name);
    let with_costs = args.only != Some(TracersTable::Volumes);
    let tracers = Tracer::ALL.into_iter();
    let tracers = tracers.filter(|tracer| {
        let can_be = !args.tracers.is_empty() || *tracer != Tracer::Lttng || Tool::Lttng.is_built();
        with_costs && can_be && asked(&args.tracers, tracer.name())
    });
    let subjects = Subject::ALL.into_iter();
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_secs());
    Plan {
        subjects: subjects.filter(|subject| asked(&args.subjects, subject.name())).collect(),
        tracers: tracers.collect(),
        with_volumes: args.only != Some(TracersTable::Costs),
        rounds: args.rounds,
        iterations: args.iterations,
        seed: args.seed.unwrap_or_else(now),
        levels: args.levels,
        counts_instructions: args.count_instructions,
    }
}
