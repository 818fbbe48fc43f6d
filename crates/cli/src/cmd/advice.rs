//! `hyperscope advice`: why exits and waits happen, and what usually helps.

use analyses::advice::{EvidenceOf, advise};
use analyses::cpu::{TakenCpu, cpu};
use analyses::exit_question::ask;
use analyses::nested::OfLevelTwo;
use report::AdviceReport;
use sources::Recording;

use crate::args::ReportArgs;
use crate::inputs::open_all;
use crate::output;
use crate::part::Part;
use crate::progress::Progress;

/// Recordings are read for their exits, and for who had CPUs that vCPUs waited for.
const PASSES: u64 = 2;

pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<()> {
    let mut recordings = open_all(&args.files)?;
    let part = Part::from(&args.part).set_on_own_clocks(&mut recordings)?;
    let out = output::open(args.output.output.as_deref(), &recordings)?;
    let bytes: u64 = recordings.iter().map(Recording::stored_len).sum();
    let progress = Progress::new(bytes.saturating_mul(PASSES));
    let tick = |bytes| progress.advance(bytes);
    let all = recordings.iter().map(|one| ask(one, &(EvidenceOf, OfLevelTwo), &tick));
    let all: Vec<_> = all.collect();
    let taken = cpu(&recordings, &[], &[], &tick).taken;
    progress.finish();
    let mut report = AdviceReport::default();
    for (recording, (exits, nested)) in recordings.iter().zip(all) {
        let at = report.sources.len();
        let taken: Vec<&TakenCpu> = taken.iter().filter(|one| one.recording == at).collect();
        let advice = advise(&exits, &nested.rows, &taken);
        let path = recording.path().display().to_string();
        report.add(path, &exits, nested.losses, advice);
    }
    output::write_part(&report, &part, &args.output, out)
}
