//! `hyperscope cpu`: who used the CPUs, and for what.

use analyses::cpu::cpu;
use anyhow::bail;
use report::{CpuBy, CpuReport};
use sources::Recording;

use crate::aligned::{align_guests, report_unaligned};
use crate::args::cpu::CpuArgs;
use crate::inputs::open_all;
use crate::misuse::Misuse;
use crate::output;
use crate::part::Part;
use crate::progress::Progress;
use crate::recorded::recorded;

/// Tables shown unless others are asked for.
const DEFAULT: [CpuBy; 3] = [CpuBy::Vcpu, CpuBy::Taken, CpuBy::Thread];

pub(crate) fn run(args: &CpuArgs) -> anyhow::Result<()> {
    let mut recordings = open_all(&args.files)?;
    let out = output::open(args.output.output.as_deref(), &recordings)?;
    let mut guests = align_guests(&mut recordings, args.method.method)?;
    let part = Part::from(&args.part).set(&mut recordings, &mut guests)?;
    report_unaligned(&guests);
    let reported: Vec<_> = recordings.iter().map(|one| recorded(one.path())).collect();
    let progress = Progress::new(recordings.iter().map(Recording::stored_len).sum());
    let processes: Vec<_> = reported.iter().map(|one| one.processes.clone()).collect();
    let cpu = cpu(&recordings, &guests, &processes, &|bytes| progress.advance(bytes));
    progress.finish();
    if cpu.tasks.is_empty() && args.by.iter().any(|one| one.0 == CpuBy::Task) {
        bail!(Misuse(
            "--by task shows what ran in guests, and there is no guest's recording of switches of threads: give \
             it next to its host's"
                .to_owned()
        ));
    }
    let mut by: Vec<CpuBy> = Vec::new();
    for one in &args.by {
        if !by.contains(&one.0) {
            by.push(one.0);
        }
    }
    let report = CpuReport {
        sources: recordings.iter().map(|one| one.path().display().to_string()).collect(),
        cpu,
        by: if by.is_empty() { DEFAULT.to_vec() } else { by },
        idle: args.idle,
        top: args.top,
        recorder_cost: reported.into_iter().find_map(|one| one.cost),
    };
    output::write_part(&report, &part, &args.output, out)
}
