//! `hyperscope virtio`: what the queues of guests carry.

use analyses::virtio::virtio;
use report::VirtioReport;
use sources::Recording;

use crate::aligned::{align_guests, report_unaligned};
use crate::args::virtio::VirtioArgs;
use crate::inputs::open_all;
use crate::output;
use crate::part::Part;
use crate::progress::Progress;
use crate::recorded::recorded;

pub(crate) fn run(args: &VirtioArgs) -> anyhow::Result<()> {
    let mut recordings = open_all(&args.files)?;
    let out = output::open(args.output.output.as_deref(), &recordings)?;
    let mut guests = align_guests(&mut recordings, args.method.method)?;
    let part = Part::from(&args.part).set(&mut recordings, &mut guests)?;
    report_unaligned(&guests);
    let progress = Progress::new(recordings.iter().map(Recording::stored_len).sum());
    let virtio = virtio(&recordings, &guests, &|bytes| progress.advance(bytes));
    progress.finish();
    let report = VirtioReport {
        sources: recordings.iter().map(|one| one.path().display().to_string()).collect(),
        virtio,
        recorder_cost: recordings.iter().find_map(|one| recorded(one.path()).cost),
    };
    output::write_part(&report, &part, &args.output, out)
}
