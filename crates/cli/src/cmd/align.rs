//! `hyperscope align`: how guests' clocks relate to their host's.

use analyses::align::align;
use analyses::contents;
use report::AlignReport;
use sources::Recording;

use crate::aligned::refuse_strangers;
use crate::args::AlignArgs;
use crate::inputs::open_all;
use crate::output;
use crate::part::Part;
use crate::progress::Progress;

pub(crate) fn run(args: &AlignArgs) -> anyhow::Result<()> {
    let mut recordings = open_all(&args.files)?;
    let part = Part::from(&args.part).set_on_own_clocks(&mut recordings)?;
    let out = output::open(args.output.output.as_deref(), &recordings)?;
    let progress = Progress::new(recordings.iter().map(Recording::stored_len).sum());
    let method = args.method.method.map(|method| method.0);
    let guests = align(&recordings, method, &|bytes| progress.advance(bytes));
    progress.finish();
    refuse_strangers(&guests, &recordings)?;
    // Recordings that are no guest's and no guest's host's were not read for that.
    let is_read = |at: usize| guests.iter().any(|guest| guest.guest == at || guest.host == at);
    let losses = recordings.iter().enumerate().filter_map(|(at, recording)| match is_read(at) {
        true => contents::losses(recording),
        false => Some(contents::losses_by_reading(recording)),
    });
    let losses = losses.collect();
    let sources = recordings.iter().map(|one| one.path().display().to_string()).collect();
    output::write_part(&AlignReport { sources, guests, losses }, &part, &args.output, out)
}
