//! `hyperscope info`: what a recording holds.

use analyses::contents::contents_and_vms;
use report::{FileInfo, InfoReport};
use session::{Selection, Session};

use crate::args::ReportArgs;
use crate::output;
use crate::progress::reading;

pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<()> {
    let mut session = Session::open(&args.files, &args.part.vms.names.of_one_session())?;
    session.select_on_own_clocks(&Selection::from(&args.part))?;
    let out = output::open(args.output.output.as_deref(), session.recordings())?;
    let found: Vec<_> = reading(&session, 1, |tick| {
        session.recordings().iter().map(|recording| contents_and_vms(recording, tick)).collect()
    });
    let reported = session.reported().to_vec();
    let part = session.part().clone();
    let files = session.into_recordings().into_iter().zip(found).zip(reported);
    let files = files.map(|((recording, (contents, vms)), reported)| FileInfo {
        recording,
        contents,
        vms,
        faults: reported.faults,
        covered: reported.covered,
    });
    let mut report = InfoReport { files: files.collect() };
    report.cover_guests_of_others();
    output::write_part(&report, &part, &args.output, out)
}
