//! `hyperscope vmm`: where time goes while VMMs have exits in hand, and in their threads.

use analyses::vmm::{Vmm, vmm};
use printable::with_causes;
use report::{VmmReport, VmmSource};
use sources::{Recording, Samples};

use crate::args::vmm::VmmArgs;
use crate::inputs::open_all;
use crate::notice::say;
use crate::output;
use crate::part::Part;
use crate::progress::Progress;
use crate::recorded::recorded;

pub(crate) fn run(args: &VmmArgs) -> anyhow::Result<()> {
    let mut recordings = open_all(&args.files)?;
    let part = Part::from(&args.part);
    let read = part.set_on_own_clocks(&mut recordings)?;
    let out = output::open_page(args.output.output.as_deref(), args.output.is_page(), &recordings)?;
    let samples: Vec<Option<Samples>> = recordings.iter().map(samples).collect();
    let progress = Progress::new(recordings.iter().map(Recording::stored_len).sum());
    let source = |(recording, samples): (&Recording, &Option<Samples>)| VmmSource {
        path: recording.path().display().to_string(),
        vmm: of_host(recording, samples, &progress),
    };
    let sources = recordings.iter().zip(&samples).map(source).collect();
    progress.finish();
    let report = VmmReport {
        sources,
        top: if args.top == 0 { usize::MAX } else { args.top },
        recorder_cost: recordings.iter().find_map(|one| recorded(one.path()).cost),
    };
    match args.output.is_page() {
        true => output::write_page(&report.page(part.description().as_deref()), out),
        false => output::write_part(&report, &read, &args.output, out),
    }
}

fn of_host(recording: &Recording, samples: &Option<Samples>, progress: &Progress) -> Vmm {
    let recorded = recorded(recording.path());
    let samples = std::slice::from_ref(samples);
    let tick = |bytes| progress.advance(bytes);
    vmm(recording, &recorded.vmm_threads, &recorded.devices, samples, &tick)
}

/// The samples that were taken with a recording. All else is known without them.
fn samples(recording: &Recording) -> Option<Samples> {
    let samples = Samples::of(recording);
    samples.unwrap_or_else(|error| {
        say(&format!("samples are left out: {}", with_causes(&error)));
        None
    })
}
