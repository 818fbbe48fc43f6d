//! `hyperscope irqs`: handlers of interrupts, of hosts and guests.

use analyses::irqs::{By, irqs};
use report::IrqsReport;
use sources::Recording;

use crate::aligned::{align_guests, report_unaligned};
use crate::args::irqs::{IrqsArgs, IrqsBy};
use crate::inputs::open_all;
use crate::output;
use crate::part::Part;
use crate::progress::Progress;
use crate::recorded::recorded;

pub(crate) fn run(args: &IrqsArgs) -> anyhow::Result<()> {
    let mut recordings = open_all(&args.files)?;
    let out = output::open(args.output.output.as_deref(), &recordings)?;
    let mut guests = align_guests(&mut recordings, args.method.method)?;
    let part = Part::from(&args.part).set(&mut recordings, &mut guests)?;
    report_unaligned(&guests);
    let by = match args.by {
        IrqsBy::Handler => By::Handler,
        IrqsBy::Cpu => By::Cpu,
        IrqsBy::Thread => By::Thread,
    };
    let progress = Progress::new(recordings.iter().map(Recording::stored_len).sum());
    let irqs = irqs(&recordings, &guests, by, &|bytes| progress.advance(bytes));
    progress.finish();
    let report = IrqsReport {
        sources: recordings.iter().map(|one| one.path().display().to_string()).collect(),
        irqs,
        top: if args.top == 0 { usize::MAX } else { args.top },
        histogram: args.histogram,
        recorder_cost: recordings.iter().find_map(|one| recorded(one.path()).cost),
    };
    output::write_part(&report, &part, &args.output, out)
}
