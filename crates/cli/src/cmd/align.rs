//! `hyperscope align`: how guests' clocks relate to their host's.

use analyses::align::align;
use report::AlignReport;
use sources::Recording;

use crate::aligned::refuse_strangers;
use crate::args::AlignArgs;
use crate::inputs::open_all;
use crate::losses::losses_of;
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
    let losses = losses_of(&recordings);
    let sources = recordings.iter().map(|one| one.path().display().to_string()).collect();
    output::write_part(&AlignReport { sources, guests, losses }, &part, &args.output, out)
}
