//! `hyperscope diff`: tests whether two recordings, or two sets of them, differ.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use analyses::diff::{
    Condition, Diff, Judged, Options, Question, Run, RunInput, diff, judge, stack_changes,
};
use anyhow::bail;
use printable::messages;
use report::{DiffReport, SelectionRead, counted, diff_verdict, plural};
use session::{
    Misuse, Selection, Session, VmNames, file_names, refuse_to_compare_processors, refuse_twice,
};
use sources::{Recording, Samples};

use crate::args::diff::{DiffArgs, Sides};
use crate::debug_files;
use command::exit_codes::CONDITION_HOLDS;
use command::output::{self, create_extra, write_extra};
use command::progress::Progress;
use command::verb::{Conflict, Memory, Range, VerbArgs};

impl VerbArgs for DiffArgs {
    fn memory(&self) -> Memory {
        Memory::Limits(self.memory)
    }

    fn range(&self) -> Range {
        (&self.part).into()
    }

    fn run(&self) -> anyhow::Result<ExitCode> {
        let sides = self.sides().map_err(Conflict)?;
        run(self, &sides)
    }
}

fn run(args: &DiffArgs, sides: &Sides<'_>) -> anyhow::Result<ExitCode> {
    let all: Vec<PathBuf> = sides.a.iter().chain(sides.b).cloned().collect();
    refuse_twice(&all)?;
    let selection = Selection::from(&args.part).for_clocks_of_their_own("diff")?;
    let names = args.part.vms.names.of_each_session();
    let runs = |paths: &[PathBuf]| {
        let open = |path| OpenRun::open(path, &names, sides.question, &selection);
        let runs = paths.iter().map(open);
        runs.collect::<anyhow::Result<Vec<_>>>()
    };
    let (a, b) = (runs(sides.a)?, runs(sides.b)?);
    let all = || a.iter().chain(&b).flat_map(|run| run.session.recordings());
    refuse_to_compare_processors(all())?;
    let out = output::open(args.output.output.as_deref(), all())?;
    let created = |path: &Option<PathBuf>| create_extra(path.as_deref(), all());
    let (flame, folded) = (created(&args.flame)?, created(&args.folded)?);
    debug_files::fetch(args.debug_files);
    let progress = Progress::new(all().map(Recording::stored_len).sum());
    let on_progress = |bytes| progress.advance(bytes);
    let measure = |runs: &[OpenRun]| -> Vec<Run> {
        runs.iter().map(|run| (sides.question.measure)(run.input(), &on_progress)).collect()
    };
    let (measured_a, measured_b) = (measure(&a), measure(&b));
    refuse_without_vms(sides, &measured_a, &measured_b)?;
    a.iter().zip(&measured_a).chain(b.iter().zip(&measured_b)).try_for_each(refuse_counts)?;
    let clocks = |nanoseconds| {
        measured_a.iter().chain(&measured_b).any(|run| run.nanoseconds == nanoseconds)
    };
    if clocks(true) && clocks(false) {
        bail!("some runs have times in nanoseconds, others in ticks: they can't be compared");
    }
    let options = Options { alpha: args.alpha, seed: args.seed };
    let diff = diff(sides.question, &measured_a, &measured_b, options);
    progress.finish();
    let names = |paths: &[PathBuf]| paths.iter().map(|path| path.display().to_string()).collect();
    let report = DiffReport {
        a: names(sides.a),
        b: names(sides.b),
        diff,
        all: args.all,
        min_effect: args.min_effect / 100.0,
    };
    if flame.is_some() || folded.is_some() {
        let changes = stack_changes(&measured_a, &measured_b, options);
        let title = format!("From A, {}, to B, {}", report.a.join(", "), report.b.join(", "));
        let picture = || Ok(report.flame(&changes, &title).into_bytes());
        write_extra(flame, "the flame graph", picture)?;
        write_extra(folded, "the stacks", || Ok(report.folded(&changes).into_bytes()))?;
    }
    let mut part = SelectionRead::default();
    a.iter().chain(&b).for_each(|run| part.add(run.session.part().clone()));
    output::write_part(&report, &part, &args.output, out)?;
    if !args.fail_if.is_empty() && !args.allow_losses {
        refuse_losses(&report.diff)?;
    }
    conclude(&report.diff, &args.fail_if, args.fail_on_estimate)
}

/// Refuses a verdict from recordings with losses or damage.
fn refuse_losses(diff: &Diff) -> anyhow::Result<()> {
    for (side, lost) in [("A", diff.lost.0), ("B", diff.lost.1)] {
        if lost.is_any() {
            bail!(
                "--fail-if: {side} lacks {} and {} could not be read, so a condition can't be decided; record again, or use --allow-losses",
                plural(lost.events, "event"),
                plural(lost.places, "place")
            );
        }
    }
    Ok(())
}

struct OpenRun {
    session: Session,
    samples: Vec<Option<Samples>>,
}

impl OpenRun {
    /// Opens a run as the question requires: with guests on their host's clock, or each recording on its
    /// own.
    fn open(
        path: &PathBuf,
        names: &VmNames,
        question: &Question,
        selection: &Selection,
    ) -> anyhow::Result<Self> {
        let mut session = Session::open_run(path, names)?;
        if question.aligned {
            session.select_on_host_clock(selection, None)?;
        } else {
            session.select_on_own_clocks(selection)?;
        }
        let samples = if question.aligned && question.sampled {
            session.recordings().iter().map(Samples::for_recording).collect::<Result<_, _>>()?
        } else {
            Vec::new()
        };
        Ok(Self { session, samples })
    }

    fn input(&self) -> RunInput<'_> {
        RunInput { view: self.session.view(), samples: &self.samples }
    }
}

/// Refuses sides of which only one has a VM: mostly a guest's recording against a host's. Boots are in
/// guests' own recordings.
fn refuse_without_vms(sides: &Sides<'_>, a: &[Run], b: &[Run]) -> anyhow::Result<()> {
    let has_none = |runs: &[Run]| runs.iter().all(|run| run.vms.is_empty());
    if sides.question.name == "boot" || has_none(a) == has_none(b) {
        return Ok(());
    }
    let (side, other, paths) = if has_none(a) { ("A", "B", sides.a) } else { ("B", "A", sides.b) };
    let path = paths.first().map(|path| path.display().to_string()).unwrap_or_default();
    bail!(Misuse(format!(
        "{side} ({path}) has no VM, but {other} has: a guest's recording can't be compared with a host's"
    )))
}

/// Refuses samples that don't represent time: those of counted events without a rate.
fn refuse_counts((run, measured): (&OpenRun, &Run)) -> anyhow::Result<()> {
    let is_empty = measured.groups.is_empty() && measured.vms.is_empty();
    let first = run.samples.first().and_then(Option::as_ref).filter(|_| is_empty);
    match first.and_then(Samples::weighed) {
        Some((unit, _)) if !unit.nanoseconds => bail!(
            "samples of {} in {} count events, not time: record at a rate (perf record -F), or sample cpu-clock",
            unit.event,
            file_names(run.session.recordings())
        ),
        _ => Ok(()),
    }
}

/// Reports which conditions hold, and for which rows.
fn conclude(diff: &Diff, conditions: &[Condition], by_estimate: bool) -> anyhow::Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    let mut err = messages();
    for judged in judge(diff, conditions, by_estimate) {
        let Judged { condition, rows, beyond, holds } = &judged;
        if *rows == 0 {
            // A typing error in a name must not look like success.
            bail!("--fail-if '{}': no row has the numbers for this condition", condition.text);
        }
        for found in holds {
            let _ = writeln!(err, "hyperscope: {}", diff_verdict(diff, condition, found));
            code = ExitCode::from(CONDITION_HOLDS);
        }
        if holds.len() < *beyond {
            let _ = writeln!(
                err,
                "hyperscope: {}: {} exceed it, but not significantly",
                condition.text,
                counted((beyond - holds.len()) as u64, "row is", "rows are")
            );
        }
    }
    Ok(code)
}
