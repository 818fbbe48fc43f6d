//! `hyperscope bench tracers`: measures the cost of tracing a guest, by tracer.

use experiment::bench::tracers::{Subject, Tracer, TracersPlan};
use lab::Cache;

use crate::args::bench::{BenchTracersArgs, TracersTable};
use crate::lab_steps::LabSteps;
use command::output;

use super::{in_lab, now};

/// Measures, and prints the results.
///
/// # Errors
/// When the lab is not available, or something in it fails.
pub(crate) fn run(args: &BenchTracersArgs) -> anyhow::Result<()> {
    let out = output::open(args.output.output.as_deref(), [])?;
    let mut plan = plan(args);
    let options = experiment::bench::up_options(plan.counts_instructions, args.offline);
    let steps = LabSteps::new();
    let wanted = experiment::bench::tracers::description(&plan);
    let missing =
        lab::missing_tools(&Cache::locate(None)?, &wanted, &options, &|step| steps.show(&step));
    steps.finish();
    plan.leave_out(missing?);
    let outcome =
        in_lab(&experiment::bench::tracers::description(&plan), &options, |lab, report| {
            experiment::bench::tracers::run(&plan, lab, report)
        })?;
    output::write(&outcome, &args.output, out)
}

fn plan(args: &BenchTracersArgs) -> TracersPlan {
    let is_requested = |names: &[String], name: &str| {
        names.is_empty() || names.iter().any(|candidate| candidate == name)
    };
    let with_costs = args.only != Some(TracersTable::Volumes);
    let tracers = Tracer::ALL.into_iter();
    let tracers = tracers.filter(|tracer| with_costs && is_requested(&args.tracers, tracer.name()));
    let subjects = Subject::ALL.into_iter();
    TracersPlan {
        subjects: subjects.filter(|subject| is_requested(&args.subjects, subject.name())).collect(),
        tracers: tracers.collect(),
        missing: Vec::new(),
        with_volumes: args.only != Some(TracersTable::Costs),
        rounds: args.rounds,
        iterations: args.iterations,
        seed: args.seed.unwrap_or_else(now),
        levels: args.levels,
        counts_instructions: args.count_instructions,
    }
}
