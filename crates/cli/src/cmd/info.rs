//! `hyperscope info`: what a recording holds.

use analyses::{contents, find_vms};
use report::{FileInfo, InfoReport};
use sources::Recording;

use crate::args::ReportArgs;
use crate::inputs::open_all;
use crate::output;
use crate::progress::Progress;

pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<()> {
    let recordings = open_all(&args.files)?;
    let mut out = output::open(args.output.output.as_deref(), &recordings)?;
    // Every recording is read twice: for its events and for its vCPUs.
    let bytes: u64 = recordings.iter().map(Recording::stored_len).sum();
    let progress = Progress::new(bytes.saturating_mul(2));
    let tick = |bytes| progress.advance(bytes);
    let files = recordings
        .into_iter()
        .map(|recording| {
            let contents = contents(&recording, &tick);
            let vms = find_vms(&recording, &tick);
            FileInfo { recording, contents, vms }
        })
        .collect();
    progress.finish();
    output::write(&InfoReport { files }, &args.output, &mut out)
}
