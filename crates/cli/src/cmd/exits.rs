//! `hyperscope exits`: accounts for every VM exit.

use analyses::exits::exits;
use analyses::group::By;
use report::{ExitsReport, Source};
use session::{Selection, Session};

use crate::args::{Cli, ExitsArgs};
use crate::output;
use crate::progress::reading;

pub(crate) fn run(args: &ExitsArgs) -> anyhow::Result<()> {
    let by = grouping(args);
    let mut session = Session::open(&args.files, &args.part.vms.names.of_one_session())?;
    session.select_on_own_clocks(&Selection::from(&args.part))?;
    if by.contains(&By::Symbol) {
        session.name_guest_functions()?;
    }
    let out = output::open(args.output.output.as_deref(), session.recordings())?;
    let sources = reading(&session, 1, |tick| sources(&session, &by, tick));
    let mut report = ExitsReport { sources, top: args.top, sorted_by: None };
    if let Some(column) = &args.sort {
        report.sort_by(column).unwrap_or_else(|error| Cli::refuse("exits", &error));
    }
    output::write_part(&report, session.part(), &args.output, out)
}

fn sources(session: &Session, by: &[By], tick: &(dyn Fn(u64) + Sync)) -> Vec<Source> {
    let all = session.recordings().iter().zip(session.reported());
    all.map(|(recording, reported)| Source {
        path: recording.path().display().to_string(),
        exits: exits(recording, by, tick),
        of_guest: session.is_of_guest(recording),
        recorder_cost: reported.cost.clone(),
        processes: reported.processes.clone(),
    })
    .collect()
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
