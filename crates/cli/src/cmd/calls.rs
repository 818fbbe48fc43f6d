//! `hyperscope calls`: which kernel functions ran, how long, and who called them.

use std::collections::HashMap;
use std::path::Path;

use analyses::calls::{CallQuestion, GuestCalls, calls, guest_calls};
use analyses::hypertrace::HypertraceFiles;
use analyses::machine_names::MachineName;
use report::{CallsReport, CallsSource, TreeLimits};
use sources::{Recording, guest_named};

use crate::args::calls::CallsArgs;
use crate::args::part::VmArgs;
use crate::cmd::hypertrace::{collected, machines};
use crate::inputs::{file_names, is_of_guest, open_all};
use crate::output::{self, create_extra, write_extra};
use crate::part::Part;
use crate::progress::Progress;
use crate::stored_frames::{self, Frames};

pub(crate) fn run(args: &CallsArgs) -> anyhow::Result<()> {
    let (files, frames) = stored_frames::find(&args.files)?;
    let mut recordings = open_all(&files)?;
    let out = output::open(args.output.output.as_deref(), &recordings)?;
    let flame = create_extra(args.flame.as_deref(), &recordings)?;
    let folded = create_extra(args.folded.as_deref(), &recordings)?;
    let question = CallQuestion { patterns: args.patterns.clone(), ..CallQuestion::default() };
    let bytes: u64 = recordings.iter().map(Recording::stored_len).sum();
    let progress = Progress::new(bytes.saturating_mul(2));
    let tick = |bytes| progress.advance(bytes);
    let mut part = Part::from(&args.part).set_vms(&mut recordings, &mut Vec::new())?;
    let sent = sent_by_guests(args, &recordings, &frames, &question, &tick)?;
    let range = Part::new(args.part.range.from, args.part.range.to, &VmArgs::default());
    part.add(range.set_on_own_clocks(&mut recordings)?);
    let source = |(at, recording): (usize, &Recording)| {
        let of_session = guest_of_session(recording.path());
        CallsSource {
            path: recording.path().display().to_string(),
            is_guest: of_session.is_some() || is_of_guest(recording, &recordings),
            machine: of_session.unwrap_or_else(|| MachineName::of(at, &recordings, &[]).name),
            calls: calls(recording, &question, &mut (), &tick),
        }
    };
    let mut sources: Vec<CallsSource> = recordings.iter().enumerate().map(source).collect();
    // Whoever asks for guests' calls doesn't ask for what their host hasn't.
    sources.retain(|one| sent.is_empty() || one.calls.tracer.is_some());
    sources.extend(sent);
    progress.finish();
    let limits = TreeLimits { depth: args.depth, least_percent: args.min_percent };
    let report = CallsReport {
        sources,
        sort: args.sort.into(),
        top: if args.top == 0 { usize::MAX } else { args.top },
        tree: args.tree.then_some(limits),
        per_call: args.correct,
    };
    let title = format!("Calls in {}", file_names(&recordings));
    write_extra(flame, "the flame graph", || Ok(report.flame(&title).into_bytes()))?;
    write_extra(folded, "the stacks", || Ok(report.folded().into_bytes()))?;
    output::write_part(&report, &part, &args.output, out)
}

/// Calls that guests' modules sent, by hypercall or in memory.
fn sent_by_guests(
    args: &CallsArgs,
    recordings: &[Recording],
    frames: &[Frames],
    question: &CallQuestion,
    tick: &(dyn Fn(u64) + Sync),
) -> anyhow::Result<Vec<CallsSource>> {
    let stored = frames.iter().map(|one| one.read(recordings)).collect::<Result<Vec<_>, _>>()?;
    let collected = collected(None, recordings)?;
    let times = Part::from(&args.part).of_all(recordings, &[])?;
    let files = HypertraceFiles { collected: &collected, stored: &stored, times };
    if !files.may_have_events(recordings) {
        return Ok(Vec::new());
    }
    let names: HashMap<_, _> = machines(recordings, frames, &stored).into_iter().collect();
    let guest_of = |from| names.get(&from).cloned().unwrap_or_else(|| "guest".to_owned());
    let sent = guest_calls(recordings, files, args.number, &guest_of, question, tick);
    let paths: Vec<String> = args.files.iter().map(|one| one.display().to_string()).collect();
    let source = |GuestCalls { guest, calls }| CallsSource {
        path: paths.join(", "),
        machine: guest,
        is_guest: true,
        calls,
    };
    Ok(sent.into_iter().map(source).collect())
}

/// The guest that a session's file is of; without clocks its name is all there is to go by.
fn guest_of_session(path: &Path) -> Option<String> {
    let is_recording = path.extension().is_some_and(|kind| kind == "dat" || kind == "pages");
    guest_named(path).filter(|_| is_recording).map(str::to_owned)
}
