//! `hyperscope align`: the relation of guests' clocks to their host's.

use std::path::PathBuf;
use std::process::ExitCode;

use analyses::contents;
use clap::Args;
use report::AlignReport;
use session::{Selection, Session};

use crate::args::{MemoryArgs, MethodArgs, OutputArgs, PartArgs};
use command::output;
use command::progress::reading;
use command::verb::{Memory, Range, VerbArgs};

/// Arguments of `align`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope align host.dat guest.dat                    all methods, and the one chosen\n  \
    hyperscope align --format json host.dat guest.dat      offsets and bounds for scripts\n  \
    hyperscope align --method time_shift NAME.hscope       what the recorder measured")]
pub(crate) struct AlignArgs {
    /// Recordings of a host and its guests, or sessions
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    #[command(flatten)]
    pub(crate) part: PartArgs,
    #[command(flatten)]
    pub(crate) method: MethodArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

impl VerbArgs for AlignArgs {
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

fn run(args: &AlignArgs) -> anyhow::Result<()> {
    let mut session = Session::open(&args.files, &args.part.vms.names.of_one_session())?;
    session.select_on_own_clocks(&Selection::from(&args.part))?;
    let out = output::open(args.output.output.as_deref(), session.recordings())?;
    let method = args.method.method();
    let guests = reading(&session, 1, |progress| session.alignments(method, progress))?;
    // An alignment reads only as much of a recording as it needs, which may be nothing.
    let losses = session.recordings().iter().map(contents::losses_by_reading).collect();
    let report = AlignReport { sources: session.paths(), guests, losses };
    output::write_part(&report, session.part(), &args.output, out)
}
