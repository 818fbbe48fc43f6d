//! `hyperscope info`: what a recording holds.

use analyses::contents::contents_and_vms;
use report::{FileInfo, InfoReport};
use sources::Recording;

use crate::args::ReportArgs;
use crate::inputs::open_all;
use crate::output;
use crate::part::Part;
use crate::progress::Progress;
use crate::recorded::{covered, faults};

pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<()> {
    let mut recordings = open_all(&args.files)?;
    let part = Part::from(&args.part).set_on_own_clocks(&mut recordings)?;
    let out = output::open(args.output.output.as_deref(), &recordings)?;
    let progress = Progress::new(recordings.iter().map(Recording::stored_len).sum());
    let tick = |bytes| progress.advance(bytes);
    let files = recordings
        .into_iter()
        .map(|recording| {
            let (contents, vms) = contents_and_vms(&recording, &tick);
            let faults = faults(recording.path());
            let covered = covered(recording.path());
            FileInfo { recording, contents, vms, faults, covered }
        })
        .collect();
    progress.finish();
    let mut report = InfoReport { files };
    report.cover_guests_of_others();
    output::write_part(&report, &part, &args.output, out)
}
