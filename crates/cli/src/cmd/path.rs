//! `hyperscope path`: which ways requests take, and how long each hop lasts.

use analyses::path::{NoSuchEvent, PathEnds, paths};
use report::{PathReport, align_summary};
use sources::Recording;

use crate::aligned::align_guests;
use crate::args::path::PathArgs;
use crate::cmd::events::no_event;
use crate::inputs::{note_guests_alone, open_all};
use crate::output;
use crate::part::Part;
use crate::progress::Progress;

pub(crate) fn run(args: &PathArgs) -> anyhow::Result<()> {
    let mut recordings = open_all(&args.files)?;
    note_guests_alone(&recordings);
    let out = output::open(args.output.output.as_deref(), &recordings)?;
    let mut guests = align_guests(&mut recordings, args.method.method)?;
    let part = Part::from(&args.part).set(&mut recordings, &mut guests)?;
    let ends = PathEnds { start: args.start.clone(), end: args.end.clone() };
    let progress = Progress::new(recordings.iter().map(Recording::stored_len).sum());
    let found = paths(&recordings, &guests, &ends, &|bytes| progress.advance(bytes));
    progress.finish();
    let paths = found.map_err(|NoSuchEvent(pattern)| no_event(&pattern, &recordings))?;
    let top = if args.top == 0 { usize::MAX } else { args.top };
    let sources = recordings.iter().map(|one| one.path().display().to_string()).collect();
    let alignment = guests.iter().map(align_summary).collect();
    output::write_part(&PathReport { sources, alignment, paths, top }, &part, &args.output, out)
}
