//! `hyperscope calls`: which kernel functions ran, how long, and who called them.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use analyses::{CallQuestion, calls};
use anyhow::Context;
use report::{CallsReport, CallsSource, TreeLimits};
use sources::Recording;

use crate::args::calls::CallsArgs;
use crate::inputs::{guest_named, is_of_guest, open_all};
use crate::machines::machine_name;
use crate::output;
use crate::progress::Progress;

pub(crate) fn run(args: &CallsArgs) -> anyhow::Result<()> {
    let recordings = open_all(&args.files)?;
    let mut out = output::open(args.output.output.as_deref(), &recordings)?;
    let mut flame = created(args.flame.as_deref(), &recordings)?;
    let mut folded = created(args.folded.as_deref(), &recordings)?;
    let question = CallQuestion { patterns: args.patterns.clone(), ..CallQuestion::default() };
    let progress = Progress::new(recordings.iter().map(Recording::stored_len).sum());
    let source = |(at, recording): (usize, &Recording)| {
        let of_session = guest_of_session(recording.path());
        CallsSource {
            path: recording.path().display().to_string(),
            is_guest: of_session.is_some() || is_of_guest(recording, &recordings),
            machine: of_session.unwrap_or_else(|| machine_name(at, &recordings, &[])),
            calls: calls(recording, &question, &mut (), &|bytes| progress.advance(bytes)),
        }
    };
    let sources = recordings.iter().enumerate().map(source).collect();
    progress.finish();
    let limits = TreeLimits { depth: args.depth, least_percent: args.min_percent };
    let report = CallsReport {
        sources,
        sort: args.sort.into(),
        top: if args.top == 0 { usize::MAX } else { args.top },
        tree: args.tree.then_some(limits),
        per_call: args.correct,
    };
    if let Some(file) = &mut flame {
        let names = recordings.iter().filter_map(|one| one.path().file_name());
        let names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        let picture = report.flame(&format!("Calls in {}", names.join(", ")));
        file.write_all(picture.as_bytes()).context("cannot write the flame graph")?;
    }
    if let Some(file) = &mut folded {
        file.write_all(report.folded().as_bytes()).context("cannot write the stacks")?;
    }
    output::write(&report, &args.output, &mut out)
}

/// The guest that a session's file is of; its name is all that tells where no clock is asked for.
fn guest_of_session(path: &Path) -> Option<String> {
    let is_recording = path.extension().is_some_and(|kind| kind == "dat" || kind == "pages");
    guest_named(path).filter(|_| is_recording)
}

fn created(path: Option<&Path>, recordings: &[Recording]) -> anyhow::Result<Option<File>> {
    path.map(|path| output::create(path, recordings)).transpose()
}
