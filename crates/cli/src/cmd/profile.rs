//! `hyperscope profile`: which code vCPUs ran.

use std::path::PathBuf;

use analyses::profile::{GuestStacks, profile, profile_of_instructions};
use anyhow::{Context, bail};
use report::{ProfileBy, ProfileReport};
use sources::{Recording, Samples};
use symbols::KernelCode;

use crate::aligned::{align_guests, report_unaligned};
use crate::args::profile::ProfileArgs;
use crate::debug_files;
use crate::guest_symbols::{each_names_a_vm, guest_symbols};
use crate::inputs::{file_names, open_all};
use crate::misuse::Misuse;
use crate::output::{self, Output, create_extra, write_extra};
use crate::part::Part;
use crate::progress::Progress;
use crate::recorded::recorded;

pub(crate) fn run(args: &ProfileArgs) -> anyhow::Result<()> {
    if args.context.is_some() && args.by.0 != ProfileBy::Instruction {
        bail!(Misuse("--context is of instructions: add --by instruction".into()));
    }
    let mut recordings = open_all(&args.files)?;
    let out = output::open(args.output.output.as_deref(), &recordings)?;
    let created = |path: &Option<PathBuf>| create_extra(path.as_deref(), &recordings);
    let outputs = Outputs {
        flame: created(&args.flame)?,
        folded: created(&args.folded)?,
        pprof: created(&args.pprof)?,
        speedscope: created(&args.speedscope)?,
    };
    let mut guests = align_guests(&mut recordings, args.method.method)?;
    let part = Part::from(&args.part).set(&mut recordings, &mut guests)?;
    report_unaligned(&guests);
    let samples = recordings.iter().map(Samples::of).collect::<Result<Vec<_>, _>>()?;
    debug_files::fetch(args.debug_files);
    let of_guests = args.guest_kallsyms.iter().map(|named| guest_symbols(named, 1));
    let of_nested = args.nested.iter().map(|named| guest_symbols(named, 2));
    let given = of_guests.chain(of_nested).collect::<anyhow::Result<Vec<_>>>()?;
    let progress = Progress::new(recordings.iter().map(Recording::stored_len).sum());
    let stacks = if args.raw { GuestStacks::Raw } else { GuestStacks::Corrected };
    let tick = |bytes| progress.advance(bytes);
    let profile = match args.by.0 {
        ProfileBy::Instruction => {
            let code = recordings.iter().map(kernel_code).collect::<anyhow::Result<Vec<_>>>()?;
            let code = (code.as_slice(), args.context.unwrap_or(0).into());
            profile_of_instructions(&recordings, &guests, &samples, &given, code, stacks, &tick)
        }
        _ => profile(&recordings, &guests, &samples, &given, stacks, &tick),
    };
    progress.finish();
    each_names_a_vm(&given, &profile)?;
    let report = ProfileReport {
        sources: recordings.iter().map(|one| one.path().display().to_string()).collect(),
        profile,
        by: args.by.0,
        symbol: args.symbol.clone(),
        top: if args.top == 0 { usize::MAX } else { args.top },
        idle: args.idle,
        threads: args.threads,
        raw: args.raw,
        recorder_cost: recordings.iter().find_map(|one| recorded(one.path()).cost),
    };
    if let Some(symbol) = args.symbol.as_deref().filter(|symbol| !report.has_function(symbol)) {
        bail!("no sample is in a function {symbol}; without --symbol all that were seen are shown");
    }
    outputs.write(&report, &format!("Time of vCPUs in {}", file_names(&recordings)))?;
    output::write_part(&report, &part, &args.output, out)
}

/// The code of a recorded machine's kernel, where its recorder kept any.
fn kernel_code(recording: &Recording) -> anyhow::Result<Option<KernelCode>> {
    let Some(path) = sources::kernel_code_file(recording.path()) else { return Ok(None) };
    KernelCode::open(&path).with_context(|| format!("cannot read {}", path.display()))
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
        write_extra(self.flame, "the flame graph", || Ok(report.flame(title).into_bytes()))?;
        write_extra(self.folded, "the stacks", || Ok(report.folded().into_bytes()))?;
        write_extra(self.pprof, "the profile for pprof", || report.pprof())?;
        write_extra(self.speedscope, "the profile for speedscope", || {
            Ok(report.speedscope(title).into_bytes())
        })
    }
}
