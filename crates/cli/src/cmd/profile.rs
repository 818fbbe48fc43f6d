//! `hyperscope profile`: which code vCPUs ran.

use std::io::{self, Write};
use std::path::PathBuf;

use analyses::profile;
use anyhow::Context;
use report::ProfileReport;
use sources::Recording;

use crate::aligned::{align_guests, report_unaligned};
use crate::args::profile::ProfileArgs;
use crate::inputs::open_all;
use crate::output::{self, Output};
use crate::part::Part;
use crate::progress::Progress;
use crate::recorded::recorded;

pub(crate) fn run(args: &ProfileArgs) -> anyhow::Result<()> {
    let mut recordings = open_all(&args.files)?;
    let out = output::open(args.output.output.as_deref(), &recordings)?;
    let created = |path: &Option<PathBuf>| {
        path.as_deref().map(|path| output::create(path, &recordings)).transpose()
    };
    let outputs = Outputs {
        flame: created(&args.flame)?,
        folded: created(&args.folded)?,
        pprof: created(&args.pprof)?,
        speedscope: created(&args.speedscope)?,
    };
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
    let names = recordings.iter().filter_map(|one| one.path().file_name());
    let names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    outputs.write(&report, &format!("Time of vCPUs in {}", names.join(", ")))?;
    output::write(&report, &args.output, out)
}

/// The files that were asked for besides the report.
struct Outputs {
    flame: Option<Output>,
    folded: Option<Output>,
    pprof: Option<Output>,
    speedscope: Option<Output>,
}

impl Outputs {
    fn write(self, report: &ProfileReport, title: &str) -> anyhow::Result<()> {
        let put = |file: Option<Output>, what: &str, of: &dyn Fn() -> io::Result<Vec<u8>>| {
            let Some(mut file) = file else { return Ok(()) };
            let written = of().and_then(|bytes| file.write_all(&bytes));
            written.with_context(|| format!("cannot write {what}"))?;
            file.complete()
        };
        put(self.flame, "the flame graph", &|| Ok(report.flame(title).into_bytes()))?;
        put(self.folded, "the stacks", &|| Ok(report.folded().into_bytes()))?;
        put(self.pprof, "the profile for pprof", &|| report.pprof())?;
        put(self.speedscope, "the profile for speedscope", &|| {
            Ok(report.speedscope(title).into_bytes())
        })
    }
}
