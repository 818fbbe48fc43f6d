//! `hyperscope nested`: the cost of nested guests' exits.

use std::process::ExitCode;

use analyses::nested::nested;
use clap::Args;
use report::NestedReport;
use session::{Selection, Session};

use crate::args::ReportArgs;
use command::output;
use command::progress::reading;
use command::verb::{Memory, Range, VerbArgs};

/// Arguments of `nested`.
#[derive(Debug, Args)]
pub(crate) struct NestedArgs {
    #[command(flatten)]
    report: ReportArgs,
}

impl VerbArgs for NestedArgs {
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

fn run(NestedArgs { report: args }: &NestedArgs) -> anyhow::Result<()> {
    let mut session = Session::open(&args.files, &args.part.vms.names.of_one_session())?;
    session.select_on_own_clocks(&Selection::from(&args.part))?;
    let out = output::open(args.output.output.as_deref(), session.recordings())?;
    let all = session.paths().into_iter().zip(session.recordings());
    let sources = reading(&session, 1, |progress| {
        all.map(|(path, recording)| (path, nested(recording, progress))).collect()
    });
    output::write_part(&NestedReport { sources }, session.part(), &args.output, out)
}
