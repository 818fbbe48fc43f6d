//! `hyperscope calls`: which kernel functions ran, how long, and their callers.

use std::collections::HashMap;
use std::path::Path;
use std::process::ExitCode;

use analyses::calls::{CallQuestion, GuestCalls, calls, guest_calls};
use analyses::hypertrace::HypertraceFiles;
use report::{CallsReport, CallsSource, TreeLimits};
use session::{Selection, Session, file_names};
use sources::guest_named;

use crate::args::calls::CallsArgs;
use crate::args::unless_zero;
use crate::cmd::hypertrace::{collected, machines};
use crate::stored_frames::{self, Frames};
use command::output::{self, create_extra, write_extra};
use command::progress::Progress;
use command::verb::{Memory, Range, VerbArgs};

/// Passes over the recordings: for their own calls, and for those that guests sent.
const PASSES: u64 = 2;

impl VerbArgs for CallsArgs {
    fn memory(&self) -> Memory {
        Memory::Limits(self.memory)
    }

    fn range(&self) -> Range {
        (&self.part).into()
    }

    fn run(&self) -> anyhow::Result<ExitCode> {
        run(self).map(|()| ExitCode::SUCCESS)
    }
}

fn run(args: &CallsArgs) -> anyhow::Result<()> {
    let (files, frames) = stored_frames::find(&args.files)?;
    let mut session = Session::open(&files, &args.part.vms.names.of_one_session())?;
    let out = output::open(args.output.output.as_deref(), session.recordings())?;
    let flame = create_extra(args.flame.as_deref(), session.recordings())?;
    let folded = create_extra(args.folded.as_deref(), session.recordings())?;
    let question = CallQuestion { patterns: args.patterns.clone(), ..CallQuestion::default() };
    let progress = Progress::new(session.view().stored_len().saturating_mul(PASSES));
    let on_progress = |bytes| progress.advance(bytes);
    let selection = Selection::from(&args.part);
    session.select_vms(&selection)?;
    let sent = sent_by_guests(args, &session, &frames, &question, &on_progress)?;
    session.select_on_own_clocks(&selection.times_alone())?;
    let mut sources = own_calls(&session, &question, &on_progress);
    // If guests sent calls, a host without calls needs no section.
    sources.retain(|source| sent.is_empty() || source.calls.tracer.is_some());
    sources.extend(sent);
    progress.finish();
    let limits = TreeLimits { depth: args.depth, least_percent: args.min_percent };
    let report = CallsReport {
        sources,
        sort: args.sort.into(),
        top: unless_zero(args.top),
        tree: args.tree.then_some(limits),
        per_call: args.correct,
    };
    let title = format!("Calls in {}", file_names(session.recordings()));
    write_extra(flame, "the flame graph", || Ok(report.flame(&title).into_bytes()))?;
    write_extra(folded, "the stacks", || Ok(report.folded().into_bytes()))?;
    output::write_part(&report, session.part(), &args.output, out)
}

/// Calls that the recordings themselves hold.
fn own_calls(
    session: &Session,
    question: &CallQuestion,
    on_progress: &(dyn Fn(u64) + Sync),
) -> Vec<CallsSource> {
    let all = session.recordings().iter().zip(session.view().machines());
    all.map(|(recording, machine)| {
        let of_session = guest_of_session(recording.path());
        CallsSource {
            path: recording.path().display().to_string(),
            is_guest: of_session.is_some() || session.is_of_guest(recording),
            machine: of_session.unwrap_or(machine.name),
            calls: calls(recording, question, &mut (), on_progress),
        }
    })
    .collect()
}

/// Calls that guests' modules sent, by hypercall or in memory.
fn sent_by_guests(
    args: &CallsArgs,
    session: &Session,
    frames: &[Frames],
    question: &CallQuestion,
    on_progress: &(dyn Fn(u64) + Sync),
) -> anyhow::Result<Vec<CallsSource>> {
    let recordings = session.recordings();
    let stored = frames
        .iter()
        .map(|guest_frames| guest_frames.read(recordings))
        .collect::<Result<Vec<_>, _>>()?;
    let collected = collected(None, recordings)?;
    let times = Selection::from(&args.part).range_of(session.view())?;
    let files = HypertraceFiles { collected: &collected, stored: &stored, times };
    if !files.may_have_events(recordings) {
        return Ok(Vec::new());
    }
    let names: HashMap<_, _> = machines(recordings, frames, &stored).into_iter().collect();
    let guest_of = |from| names.get(&from).cloned().unwrap_or_else(|| "guest".to_owned());
    let sent = guest_calls(recordings, files, args.number, &guest_of, question, on_progress);
    let paths: Vec<String> = args.files.iter().map(|file| file.display().to_string()).collect();
    let source = |GuestCalls { guest, calls }| CallsSource {
        path: paths.join(", "),
        machine: guest,
        is_guest: true,
        calls,
    };
    Ok(sent.into_iter().map(source).collect())
}

/// The guest of a session's file; without clocks, only the file name identifies it.
fn guest_of_session(path: &Path) -> Option<String> {
    let is_recording = path.extension().is_some_and(|kind| kind == "dat" || kind == "pages");
    guest_named(path).filter(|_| is_recording).map(str::to_owned)
}
