//! `hyperscope exits`: accounts for every VM exit.

use analyses::exits::exits;
use analyses::group::By;
use report::{ExitsReport, Source};
use sources::Recording;

use crate::args::{Cli, ExitsArgs};
use crate::inputs::{is_of_guest, name_guest_functions, open_all};
use crate::output;
use crate::part::Part;
use crate::progress::Progress;
use crate::recorded::recorded;

pub(crate) fn run(args: &ExitsArgs) -> anyhow::Result<()> {
    let by = grouping(args);
    let mut recordings = open_all(&args.files)?;
    let part = Part::from(&args.part).set_on_own_clocks(&mut recordings)?;
    if by.contains(&By::Symbol) {
        name_guest_functions(&mut recordings)?;
    }
    let out = output::open(args.output.output.as_deref(), &recordings)?;
    let progress = Progress::new(recordings.iter().map(Recording::stored_len).sum());
    let sources = recordings
        .iter()
        .map(|recording| {
            let reported = recorded(recording.path());
            Source {
                path: recording.path().display().to_string(),
                exits: exits(recording, &by, &|bytes| progress.advance(bytes)),
                of_guest: is_of_guest(recording, &recordings),
                recorder_cost: reported.cost,
                processes: reported.processes,
            }
        })
        .collect();
    progress.finish();
    let mut report = ExitsReport { sources, top: args.top, sorted_by: None };
    if let Some(column) = &args.sort {
        report.sort_by(column).unwrap_or_else(|error| Cli::refuse("exits", &error));
    }
    output::write_part(&report, &part, &args.output, out)
}

/// The grouping asked for, each property once; a vCPU's id says nothing without its VM.
fn grouping(args: &ExitsArgs) -> Vec<By> {
    let asked: Vec<By> = args.by.iter().map(|by| by.0).collect();
    let mut by = Vec::new();
    for one in &asked {
        if *one == By::Vcpu && !asked.contains(&By::Vm) && !by.contains(&By::Vm) {
            by.push(By::Vm);
        }
        if !by.contains(one) {
            by.push(*one);
        }
    }
    if by.is_empty() { By::DEFAULT.to_vec() } else { by }
}
