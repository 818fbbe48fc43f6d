//! `hyperscope bench tracers`: what tracing a guest costs, by each tracer.

use bench::tracers::{Plan, Subject, Tracer};
use lab::Tool;

use crate::args::bench::{BenchTracersArgs, TracersTable};
use crate::output;

use super::{in_lab, now};

/// Measures, and prints what came of it.
///
/// # Errors
/// When the lab can't be had, or something in it fails.
pub(crate) fn run(args: &BenchTracersArgs) -> anyhow::Result<()> {
    let mut out = output::open(args.output.output.as_deref(), &[])?;
    let plan = plan(args);
    let outcome = in_lab(
        &bench::tracers::description(&plan),
        &bench::manner(plan.counts_instructions, args.offline),
        |lab, tell| bench::tracers::run(&plan, lab, tell),
    )?;
    output::write(&outcome, &args.output, &mut *out)
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
