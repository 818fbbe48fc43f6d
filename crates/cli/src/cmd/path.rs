//! `hyperscope path`: the paths of requests, and the time of each hop.

use std::process::ExitCode;

use analyses::path::{NoSuchEvent, PathEnds, paths};
use report::PathReport;
use session::{Selection, Session};

use crate::args::path::PathArgs;
use crate::args::unless_zero;
use crate::cmd::events::no_event;
use command::output;
use command::progress::reading;
use command::verb::{Memory, Range, VerbArgs};

impl VerbArgs for PathArgs {
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

fn run(args: &PathArgs) -> anyhow::Result<()> {
    let mut session = Session::open(&args.files, &args.part.vms.names.of_one_session())?;
    session.say_guests_alone();
    let out = output::open(args.output.output.as_deref(), session.recordings())?;
    session.select_on_host_clock(&Selection::from(&args.part), args.method.method())?;
    let ends = PathEnds { start: args.start.clone(), end: args.end.clone() };
    let found = reading(&session, 1, |progress| paths(session.view(), &ends, progress));
    let report = PathReport {
        sources: session.paths(),
        alignment: session.alignment(),
        paths: found.map_err(|NoSuchEvent(pattern)| no_event(&pattern, session.recordings()))?,
        top: unless_zero(args.top),
    };
    output::write_part(&report, session.part(), &args.output, out)
}
