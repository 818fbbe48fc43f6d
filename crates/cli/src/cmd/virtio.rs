//! `hyperscope virtio`: the load of guests' queues.

use std::process::ExitCode;

use analyses::virtio::virtio;
use report::VirtioReport;
use session::{Selection, Session};

use crate::args::virtio::VirtioArgs;
use command::output;
use command::progress::reading;
use command::verb::{Memory, Range, VerbArgs};

impl VerbArgs for VirtioArgs {
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

fn run(args: &VirtioArgs) -> anyhow::Result<()> {
    let mut session = Session::open(&args.files, &args.part.vms.names.of_one_session())?;
    let out = output::open(args.output.output.as_deref(), session.recordings())?;
    session.select_on_host_clock(&Selection::from(&args.part), args.method.method())?;
    session.say_unaligned();
    let report = VirtioReport {
        virtio: reading(&session, 1, |progress| virtio(session.view(), progress)),
        sources: session.paths(),
        recorder_cost: session.recorder_cost(),
    };
    output::write_part(&report, session.part(), &args.output, out)
}
