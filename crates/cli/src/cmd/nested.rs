//! `hyperscope nested`: what exits of nested guests cost.

use analyses::nested::nested;
use report::NestedReport;
use sources::Recording;

use crate::args::ReportArgs;
use crate::inputs::open_all;
use crate::output;
use crate::part::Part;
use crate::progress::Progress;

pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<()> {
    let mut recordings = open_all(&args.files)?;
    let part = Part::from(&args.part).set_on_own_clocks(&mut recordings)?;
    let out = output::open(args.output.output.as_deref(), &recordings)?;
    let progress = Progress::new(recordings.iter().map(Recording::stored_len).sum());
    let sources = recordings
        .iter()
        .map(|recording| {
            let path = recording.path().display().to_string();
            (path, nested(recording, &|bytes| progress.advance(bytes)))
        })
        .collect();
    progress.finish();
    output::write_part(&NestedReport { sources }, &part, &args.output, out)
}
