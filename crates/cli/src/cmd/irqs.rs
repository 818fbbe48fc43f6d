//! `hyperscope irqs`: handlers of interrupts, of hosts and guests.

use std::process::ExitCode;

use analyses::irqs::{By, irqs};
use report::IrqsReport;
use session::{Selection, Session};

use crate::args::irqs::{IrqsArgs, IrqsBy};
use crate::args::unless_zero;
use command::output;
use command::progress::reading;
use command::verb::{Memory, Range, VerbArgs};

impl VerbArgs for IrqsArgs {
    fn memory(&self) -> Memory {
        Memory::Limits(self.memory)
    }

    fn range(&self) -> Range {
        (&self.part).into()
    }

    fn run(&self) -> anyhow::Result<ExitCode> {
        run(self).map(|()| ExitCode::SUCCESS)
    }
}

fn run(args: &IrqsArgs) -> anyhow::Result<()> {
    let mut session = Session::open(&args.files, &args.part.vms.names.of_one_session())?;
    let out = output::open(args.output.output.as_deref(), session.recordings())?;
    session.select_on_host_clock(&Selection::from(&args.part), args.method.method())?;
    session.say_unaligned();
    let by = match args.by {
        IrqsBy::Handler => By::Handler,
        IrqsBy::Cpu => By::Cpu,
        IrqsBy::Thread => By::Thread,
    };
    let report = IrqsReport {
        irqs: reading(&session, 1, |progress| irqs(session.view(), by, progress)),
        sources: session.paths(),
        top: unless_zero(args.top),
        histogram: args.histogram,
        recorder_cost: session.recorder_cost(),
    };
    output::write_part(&report, session.part(), &args.output, out)
}
