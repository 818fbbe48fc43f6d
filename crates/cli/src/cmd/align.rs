//! `hyperscope align`: how guests' clocks relate to their host's.

use analyses::contents;
use report::AlignReport;
use session::{Selection, Session};

use crate::args::AlignArgs;
use crate::output;
use crate::progress::reading;

pub(crate) fn run(args: &AlignArgs) -> anyhow::Result<()> {
    let mut session = Session::open(&args.files, &args.part.vms.names.of_one_session())?;
    session.select_on_own_clocks(&Selection::from(&args.part))?;
    let out = output::open(args.output.output.as_deref(), session.recordings())?;
    let method = args.method.method();
    let guests = reading(&session, 1, |tick| session.alignments(method, tick))?;
    // Recordings that are no guest's and no guest's host's were not read for that.
    let is_read = |at: usize| guests.iter().any(|guest| guest.guest == at || guest.host == at);
    let losses = session.recordings().iter().enumerate().filter_map(|(at, recording)| {
        if is_read(at) {
            contents::losses(recording)
        } else {
            Some(contents::losses_by_reading(recording))
        }
    });
    let losses = losses.collect();
    let report = AlignReport { sources: session.paths(), guests, losses };
    output::write_part(&report, session.part(), &args.output, out)
}
