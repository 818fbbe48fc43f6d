//! `hyperscope profile`: which code vCPUs ran.

use std::io::Write;

use analyses::profile;
use anyhow::Context;
use report::ProfileReport;
use sources::Recording;

use crate::aligned::{align_guests, report_unaligned};
use crate::args::profile::ProfileArgs;
use crate::inputs::open_all;
use crate::output;
use crate::part::Part;
use crate::progress::Progress;
use crate::recorded::recorded;

pub(crate) fn run(args: &ProfileArgs) -> anyhow::Result<()> {
    let mut recordings = open_all(&args.files)?;
    let out = output::open(args.output.output.as_deref(), &recordings)?;
    let created = |path| output::create(path, &recordings);
    let flame = args.flame.as_deref().map(created).transpose()?;
    let folded = args.folded.as_deref().map(created).transpose()?;
    let mut guests = align_guests(&mut recordings, args.method.method)?;
    Part::from(&args.part).set(&mut recordings, &mut guests)?;
    report_unaligned(&guests);
    let progress = Progress::new(recordings.iter().map(Recording::stored_len).sum());
    let profile = profile(&recordings, &guests, &|bytes| progress.advance(bytes));
    progress.finish();
    let report = ProfileReport {
        sources: recordings.iter().map(|one| one.path().display().to_string()).collect(),
        profile,
        by: args.by.0,
        top: if args.top == 0 { usize::MAX } else { args.top },
        idle: args.idle,
        recorder_cost: recordings.iter().find_map(|one| recorded(one.path()).cost),
    };
    if let Some(mut file) = flame {
        let names = recordings.iter().filter_map(|one| one.path().file_name());
        let names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        let picture = report.flame(&format!("Time of vCPUs in {}", names.join(", ")));
        file.write_all(picture.as_bytes()).context("cannot write the flame graph")?;
        file.complete()?;
    }
    if let Some(mut file) = folded {
        file.write_all(report.folded().as_bytes()).context("cannot write the stacks")?;
        file.complete()?;
    }
    output::write(&report, &args.output, out)
}
