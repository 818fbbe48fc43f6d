//! `hyperscope nested`: what exits of nested guests cost.

use analyses::nested::nested;
use report::NestedReport;
use session::{Selection, Session};

use crate::args::ReportArgs;
use crate::output;
use crate::progress::reading;

pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<()> {
    let mut session = Session::open(&args.files, &args.part.vms.names.of_one_session())?;
    session.select_on_own_clocks(&Selection::from(&args.part))?;
    let out = output::open(args.output.output.as_deref(), session.recordings())?;
    let all = session.paths().into_iter().zip(session.recordings());
    let sources = reading(&session, 1, |tick| {
        all.map(|(path, recording)| (path, nested(recording, tick))).collect()
    });
    output::write_part(&NestedReport { sources }, session.part(), &args.output, out)
}
