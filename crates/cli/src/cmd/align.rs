//! `hyperscope align`: how guests' clocks relate to their host's.

use report::AlignReport;
use session::{Selection, Session, losses_of};

use crate::args::AlignArgs;
use crate::output;
use crate::progress::reading;

pub(crate) fn run(args: &AlignArgs) -> anyhow::Result<()> {
    let mut session = Session::open(&args.files, &args.part.vms.names.of_one_session())?;
    session.select_on_own_clocks(&Selection::from(&args.part))?;
    let out = output::open(args.output.output.as_deref(), session.recordings())?;
    let method = args.method.method();
    let guests = reading(&session, 1, |tick| session.alignments(method, tick))?;
    let losses = losses_of(session.recordings());
    let report = AlignReport { sources: session.paths(), guests, losses };
    output::write_part(&report, session.part(), &args.output, out)
}
