//! `hyperscope why`: what VMs did with their time, and the causes of slowness, the costliest first.

use std::process::ExitCode;

use analyses::why::{PASSES, why};
use clap::Args;
use report::{WhyQuestion, WhyReport};
use session::{Selection, Session};

use crate::args::ReportArgs;
use command::output;
use command::progress::reading;
use command::verb::{Memory, Range, VerbArgs};

/// Arguments of `why`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope why NAME.hscope                     a host and its guests\n  \
    hyperscope why --vm web --from +2 host.dat     one VM, from the third second on\n  \
    hyperscope why --format json NAME.hscope       all causes with their evidence, for scripts")]
pub(crate) struct WhyArgs {
    #[command(flatten)]
    report: ReportArgs,
}

impl VerbArgs for WhyArgs {
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

fn run(WhyArgs { report: args }: &WhyArgs) -> anyhow::Result<()> {
    let mut session = Session::open(&args.files, &args.part.vms.names.of_one_session())?;
    let out = output::open(args.output.output.as_deref(), session.recordings())?;
    session.select_on_host_clock(&Selection::from(&args.part), None)?;
    session.say_unaligned();
    let processes = session.processes();
    let why = reading(&session, PASSES, |progress| why(session.view(), &processes, progress));
    let vm = match args.part.vms.vm.as_slice() {
        [vm] => Some(vm.clone()),
        _ => None,
    };
    let report = WhyReport { sources: session.paths(), question: WhyQuestion { vm }, why };
    output::write_part(&report, session.part(), &args.output, out)
}
