//! `hyperscope advice`: why exits and waits happen, and what usually helps.

use std::process::ExitCode;

use analyses::advice::{EvidenceOf, advise};
use analyses::cpu::{TakenCpu, cpu};
use analyses::exit_question::ask;
use analyses::nested::OfLevelTwo;
use clap::Args;
use report::AdviceReport;
use session::{Selection, Session};

use crate::args::ReportArgs;
use command::output;
use command::progress::reading;
use command::verb::{Memory, Range, VerbArgs};

/// Passes over the recordings: for exits, and for threads that used CPUs while vCPUs waited.
const PASSES: u64 = 2;

/// Arguments of `advice`.
#[derive(Debug, Args)]
pub(crate) struct AdviceArgs {
    #[command(flatten)]
    report: ReportArgs,
}

impl VerbArgs for AdviceArgs {
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

fn run(AdviceArgs { report: args }: &AdviceArgs) -> anyhow::Result<()> {
    let mut session = Session::open(&args.files, &args.part.vms.names.of_one_session())?;
    session.select_on_own_clocks(&Selection::from(&args.part))?;
    let out = output::open(args.output.output.as_deref(), session.recordings())?;
    let recordings = session.recordings();
    let (all, takers) = reading(&session, PASSES, |progress| {
        let all =
            recordings.iter().map(|recording| ask(recording, &(EvidenceOf, OfLevelTwo), progress));
        let all: Vec<_> = all.collect();
        (all, cpu(session.view(), &[], progress).takers)
    });
    let mut report = AdviceReport::default();
    for (path, (exits, nested)) in session.paths().into_iter().zip(all) {
        let at = report.sources.len();
        let takers: Vec<&TakenCpu> = takers.iter().filter(|taker| taker.recording == at).collect();
        let advice = advise(&exits, &nested.rows, &takers);
        report.add(path, &exits, nested.losses, advice);
    }
    output::write_part(&report, session.part(), &args.output, out)
}
