//! Makes the parts of a page.

use std::io::Write;

use analyses::advice::{Advice, ExitEvidence, advise};
use analyses::calls::RecordedCalls;
use analyses::cpu::{CpuUse, TakenCpu};
use analyses::diff::{Options, QUESTIONS, RunInput, diff};
use analyses::irqs::Irqs;
use analyses::lanes::LaneMachine;
use analyses::path::Paths;
use anyhow::bail;
use printable::messages;
use report::{
    CallSort, CallsReport, CallsSource, CpuBy, CpuReport, CriticalReport, DiffReport, ExitsReport,
    IrqsReport, NestedReport, PathReport, TreeLimits,
};
use session::{Selection, Session, View, refuse_to_compare_processors};
use sources::{Recording, Samples};

use crate::args::PageArgs;
use crate::cmd::critical::critical_of_task;

/// Accepted share of false positives among significant differences.
const ALPHA: f64 = 0.05;

/// The part of the call tree that is wide enough to be visible.
const FLAME: TreeLimits = TreeLimits { depth: 128, least_percent: 0.1 };

/// The waits of a task, if requested.
pub(super) fn critical_of(
    args: &PageArgs,
    session: &Session,
    progress: &(dyn Fn(u64) + Sync),
) -> anyhow::Result<Option<CriticalReport>> {
    let Some(task) = &args.critical else { return Ok(None) };
    let found = critical_of_task(task, session.view(), progress)?;
    Ok(Some(CriticalReport {
        sources: session.paths(),
        alignment: session.alignment(),
        task: task.clone(),
        critical: found,
        top: usize::MAX,
        recorder_cost: None,
    }))
}

/// Advice for each recording.
pub(super) fn advice_of(
    evidence: &[ExitEvidence],
    nested: Option<&NestedReport>,
    takers: &[TakenCpu],
) -> Vec<(usize, Advice)> {
    let advice = |(at, exits): (usize, &ExitEvidence)| {
        let nested = nested.and_then(|nested| nested.sources.get(at));
        let takers: Vec<&TakenCpu> = takers.iter().filter(|taker| taker.recording == at).collect();
        advise(exits, nested.map_or(&[], |(_, nested)| &nested.rows), &takers)
            .into_iter()
            .map(move |advice| (at, advice))
    };
    evidence.iter().enumerate().flat_map(advice).collect()
}

/// The comparison with another run, if one was named.
pub(super) fn diff_of(
    args: &PageArgs,
    view: View<'_>,
    progress: &(dyn Fn(u64) + Sync),
) -> anyhow::Result<Option<DiffReport>> {
    let Some(baseline) = &args.baseline else { return Ok(None) };
    let Some(question) = QUESTIONS.iter().find(|question| question.name == "exits") else {
        return Ok(None);
    };
    let mut baseline_run = Session::open_run(baseline, &args.part.vms.names.of_one_session())?;
    refuse_to_compare_processors(baseline_run.recordings().iter().chain(view.recordings))?;
    let selection = Selection::from(&args.part).for_clocks_of_their_own("--baseline")?;
    baseline_run.select_on_own_clocks(&selection)?;
    let before = (question.measure)(RunInput { view: baseline_run.view(), samples: &[] }, progress);
    let now = (question.measure)(RunInput { view, samples: &[] }, progress);
    if before.nanoseconds != now.nanoseconds {
        bail!("times of {} have another unit and can't be compared", baseline.display());
    }
    baseline_run.say_losses();
    let options = Options { alpha: ALPHA, seed: 1 };
    Ok(Some(DiffReport {
        a: vec![baseline.display().to_string()],
        b: vec![view.paths().join(", ")],
        diff: diff(question, &[before], &[now], options),
        all: true,
        min_effect: 0.0,
    }))
}

/// The users of the CPUs.
pub(super) fn cpu_report(session: &Session, exits: &ExitsReport, cpu: CpuUse) -> CpuReport {
    CpuReport {
        sources: session.paths(),
        cpu,
        by: CpuBy::ALL.to_vec(),
        idle: false,
        top: None,
        recorder_cost: exits.sources.iter().find_map(|source| source.recorder_cost.clone()),
    }
}

/// Handlers of interrupts.
pub(super) fn irqs_report(session: &Session, irqs: Irqs) -> IrqsReport {
    IrqsReport {
        sources: session.paths(),
        irqs,
        top: usize::MAX,
        histogram: false,
        recorder_cost: None,
    }
}

/// The samples of each recording. If they can't be read, the page has everything else.
pub(super) fn samples_of(recordings: &[Recording]) -> Vec<Option<Samples>> {
    let samples = |recording: &Recording| {
        Samples::for_recording(recording).unwrap_or_else(|error| {
            let _ = writeln!(messages(), "hyperscope: the page is without samples: {error}");
            None
        })
    };
    recordings.iter().map(samples).collect()
}

/// The functions of recordings with calls.
pub(super) fn calls_of(
    session: &Session,
    machines: &[LaneMachine],
    calls: Vec<(usize, RecordedCalls)>,
) -> Option<CallsReport> {
    let paths = session.paths();
    let source = |(at, calls): (usize, RecordedCalls)| {
        let machine = machines.get(at)?;
        Some(CallsSource {
            path: paths.get(at)?.clone(),
            machine: machine.name.clone(),
            is_guest: machine.is_guest,
            calls,
        })
    };
    let sources: Vec<CallsSource> = calls.into_iter().filter_map(source).collect();
    (!sources.is_empty()).then_some(CallsReport {
        sources,
        sort: CallSort::Own,
        top: usize::MAX,
        tree: Some(FLAME),
        per_call: None,
    })
}

/// The paths of requests; `None` if the recordings don't show them.
pub(super) fn path_report(session: &Session, paths: Paths) -> Option<PathReport> {
    (!paths.paths.is_empty()).then(|| PathReport {
        sources: session.paths(),
        alignment: session.alignment(),
        paths,
        top: usize::MAX,
    })
}
