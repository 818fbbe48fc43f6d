//! `hyperscope info`: the contents of a recording.

use std::process::ExitCode;

use analyses::contents::contents_and_vms;
use clap::Args;
use report::{FileInfo, InfoReport};
use session::{Selection, Session};

use crate::args::ReportArgs;
use command::output;
use command::progress::reading;
use command::verb::{Memory, Range, VerbArgs};

/// Arguments of `info`.
#[derive(Debug, Args)]
pub(crate) struct InfoArgs {
    #[command(flatten)]
    report: ReportArgs,
}

impl VerbArgs for InfoArgs {
    fn memory(&self) -> Memory {
        Memory::Limits(self.report.memory)
    }

    fn range(&self) -> Range {
        (&self.report.part).into()
    }

    fn run(&self) -> anyhow::Result<ExitCode> {
        run(self).map(|()| ExitCode::SUCCESS)
    }
}

fn run(InfoArgs { report: args }: &InfoArgs) -> anyhow::Result<()> {
    let mut session = Session::open(&args.files, &args.part.vms.names.of_one_session())?;
    session.select_on_own_clocks(&Selection::from(&args.part))?;
    let out = output::open(args.output.output.as_deref(), session.recordings())?;
    let found: Vec<_> = reading(&session, 1, |progress| {
        session.recordings().iter().map(|recording| contents_and_vms(recording, progress)).collect()
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
