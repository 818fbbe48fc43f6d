//! `hyperscope vmm`: where time goes while VMMs handle exits, and in their threads.

use std::process::ExitCode;
use std::slice::from_ref;

use analyses::vmm::vmm;
use printable::with_causes;
use report::{VmmReport, VmmSource};
use session::{Selection, Session};
use sources::{Recording, Samples};

use crate::args::unless_zero;
use crate::args::vmm::VmmArgs;
use command::notice::say;
use command::output;
use command::progress::reading;
use command::verb::{Memory, Range, VerbArgs};

impl VerbArgs for VmmArgs {
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

fn run(args: &VmmArgs) -> anyhow::Result<()> {
    let mut session = Session::open(&args.files, &args.part.vms.names.of_one_session())?;
    let selection = Selection::from(&args.part);
    session.select_on_own_clocks(&selection)?;
    let is_page = args.output.is_page();
    let out = output::open_page(args.output.output.as_deref(), is_page, session.recordings())?;
    let samples: Vec<Option<Samples>> = session.recordings().iter().map(samples).collect();
    let report = VmmReport {
        sources: reading(&session, 1, |progress| sources(&session, &samples, progress)),
        top: unless_zero(args.top),
        recorder_cost: session.recorder_cost(),
    };
    if is_page {
        output::write_page(&report.page(selection.description().as_deref()), out)
    } else {
        output::write_part(&report, session.part(), &args.output, out)
    }
}

fn sources(
    session: &Session,
    samples: &[Option<Samples>],
    progress: &(dyn Fn(u64) + Sync),
) -> Vec<VmmSource> {
    let all = session.recordings().iter().zip(session.reported()).zip(samples);
    all.map(|((recording, reported), samples)| VmmSource {
        path: recording.path().display().to_string(),
        vmm: vmm(recording, &reported.vmm_threads, &reported.devices, from_ref(samples), progress),
    })
    .collect()
}

/// The samples of a recording. Everything else works without them.
fn samples(recording: &Recording) -> Option<Samples> {
    let samples = Samples::for_recording(recording);
    samples.unwrap_or_else(|error| {
        say(&format!("samples are omitted: {}", with_causes(&error)));
        None
    })
}
