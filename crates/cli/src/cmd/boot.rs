//! `hyperscope boot`: how guests boot and go down, and what that costs their host.

use std::io::Write;

use analyses::{BootMarks, boot};
use anyhow::Context;
use report::{BootReport, align_summary, boot_svg};
use sources::{Collected, Recording};

use crate::aligned::align_guests;
use crate::args::boot::BootArgs;
use crate::inputs::open_all;
use crate::output;
use crate::progress::Progress;
use crate::recorded::event_cost;

pub(crate) fn run(args: &BootArgs) -> anyhow::Result<()> {
    let mut recordings = open_all(&args.files)?;
    let mut out = output::open(args.output.output.as_deref(), &recordings)?;
    let svg = args.svg.as_deref().map(|path| output::create(path, &recordings)).transpose()?;
    let guests = align_guests(&mut recordings, args.method.method)?;
    let marks = BootMarks { until: args.until.clone(), down: args.down.clone() };
    let progress = Progress::new(recordings.iter().map(Recording::stored_len).sum());
    let collected = recordings.iter().map(Collected::beside).collect::<Result<Vec<_>, _>>()?;
    let mut boot = boot(&recordings, &collected, &guests, &marks, &|bytes| progress.advance(bytes));
    progress.finish();
    for machine in &mut boot.machines {
        let guest = machine.guest.and_then(|at| recordings.get(at));
        machine.event_cost = guest.and_then(|guest| event_cost(guest.path()));
    }
    let report = BootReport {
        sources: recordings.iter().map(|one| one.path().display().to_string()).collect(),
        alignment: guests.iter().map(align_summary).collect(),
        boot,
        top: args.top,
    };
    if let Some(mut svg) = svg {
        svg.write_all(boot_svg(&report).as_bytes()).context("cannot write the picture")?;
    }
    output::write(&report, &args.output, &mut out)
}
