//! `hyperscope boot`: boots and shutdowns of guests, and their cost on the host.

use std::io::Write;
use std::process::ExitCode;

use analyses::boot::BootMarks;
use anyhow::Context;
use report::{BootReport, boot_svg};
use session::{Session, losses_of};

use crate::args::boot::BootArgs;
use command::output;
use command::progress::reading;
use command::verb::{Memory, Range, VerbArgs};

impl VerbArgs for BootArgs {
    fn memory(&self) -> Memory {
        Memory::Limits(self.memory)
    }

    fn range(&self) -> Range {
        Range::Within { from: self.from, to: self.to }
    }

    fn run(&self) -> anyhow::Result<ExitCode> {
        run(self).map(|()| ExitCode::SUCCESS)
    }
}

fn run(args: &BootArgs) -> anyhow::Result<()> {
    let mut session = Session::open(&args.files, &args.vms.names.of_one_session())?;
    let out = output::open(args.output.output.as_deref(), session.recordings())?;
    let svg = output::create_extra(args.svg.as_deref(), session.recordings())?;
    let selection = args.vms.selection(args.from, args.to);
    session.select_on_host_clock(&selection, args.method.method())?;
    let marks = BootMarks { until: args.until.clone(), down: args.down.clone() };
    let found = reading(&session, 1, |progress| session.boots(&marks, progress))?;
    let mut report = BootReport { top: args.top, ..found };
    // If no machine boots, the recordings have not been read.
    if report.boot.losses.is_empty() {
        report.boot.losses = losses_of(session.recordings());
    }
    if let Some(mut svg) = svg {
        svg.write_all(boot_svg(&report).as_bytes()).context("cannot write the SVG file")?;
        svg.complete()?;
    }
    output::write_part(&report, session.part(), &args.output, out)
}
