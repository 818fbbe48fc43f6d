//! `hyperscope boot`: how guests boot and go down, and what that costs their host.

use std::io::Write;

use analyses::boot::BootMarks;
use anyhow::Context;
use report::{BootReport, boot_svg};
use sources::Recording;

use crate::aligned::align_guests;
use crate::args::boot::BootArgs;
use crate::boots;
use crate::inputs::open_all;
use crate::losses::losses_of;
use crate::output;
use crate::part::Part;
use crate::progress::Progress;

pub(crate) fn run(args: &BootArgs) -> anyhow::Result<()> {
    let mut recordings = open_all(&args.files)?;
    let out = output::open(args.output.output.as_deref(), &recordings)?;
    let svg = args.svg.as_deref().map(|path| output::create(path, &recordings)).transpose()?;
    let mut guests = align_guests(&mut recordings, args.method.method)?;
    let part = Part::new(args.from, args.to, &args.vms).set(&mut recordings, &mut guests)?;
    let marks = BootMarks { until: args.until.clone(), down: args.down.clone() };
    let progress = Progress::new(recordings.iter().map(Recording::stored_len).sum());
    let found = boots::found(&recordings, &guests, &marks, &|bytes| progress.advance(bytes))?;
    progress.finish();
    let mut report = BootReport { top: args.top, ..found };
    // Where no machine boots, recordings were not read for it.
    if report.boot.losses.is_empty() {
        report.boot.losses = losses_of(&recordings);
    }
    if let Some(mut svg) = svg {
        svg.write_all(boot_svg(&report).as_bytes()).context("cannot write the picture")?;
        svg.complete()?;
    }
    output::write_part(&report, &part, &args.output, out)
}
