//! `hyperscope profile`: the code that vCPUs ran.

use std::path::PathBuf;
use std::process::ExitCode;

use analyses::profile::{
    GuestStacks, GuestSymbols, Profile, ProfileQuestion, profile, profile_of_instructions,
};
use anyhow::{Context, bail};
use report::{ProfileBy, ProfileReport};
use session::{Misuse, Selection, Session, file_names};
use sources::{Recording, Samples};
use symbols::KernelCode;

use crate::args::profile::ProfileArgs;
use crate::args::unless_zero;
use crate::debug_files;
use crate::guest_symbols::{each_names_a_vm, guest_symbols};
use command::output::{self, Output, create_extra, write_extra};
use command::progress::reading;
use command::verb::{Memory, Range, VerbArgs};

impl VerbArgs for ProfileArgs {
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

fn run(args: &ProfileArgs) -> anyhow::Result<()> {
    if args.context.is_some() && args.by.0 != ProfileBy::Instruction {
        bail!(Misuse("--context needs --by instruction".into()));
    }
    let mut session = Session::open(&args.files, &args.part.vms.names.of_one_session())?;
    let out = output::open(args.output.output.as_deref(), session.recordings())?;
    let outputs = Outputs::create(args, &session)?;
    session.select_on_host_clock(&Selection::from(&args.part), args.method.method())?;
    session.say_unaligned();
    let profile = profile_of(args, &session)?;
    let report = ProfileReport {
        sources: session.paths(),
        profile,
        by: args.by.0,
        symbol: args.symbol.clone(),
        top: unless_zero(args.top),
        idle: args.idle,
        threads: args.threads,
        raw: args.raw,
        recorder_cost: session.recorder_cost(),
    };
    if let Some(symbol) = args.symbol.as_deref().filter(|symbol| !report.has_function(symbol)) {
        bail!("no sample hit the function {symbol}; omit --symbol to see all sampled functions");
    }
    outputs.write(&report, &format!("Time of vCPUs in {}", file_names(session.recordings())))?;
    output::write_part(&report, session.part(), &args.output, out)
}

/// The profile, with the given symbols.
fn profile_of(args: &ProfileArgs, session: &Session) -> anyhow::Result<Profile> {
    let recordings = session.recordings();
    let samples = recordings.iter().map(Samples::for_recording).collect::<Result<Vec<_>, _>>()?;
    debug_files::fetch(args.debug_files);
    let of_guests = args.guest_kallsyms.iter().map(|named| guest_symbols(named, 1));
    let of_nested = args.nested.iter().map(|named| guest_symbols(named, 2));
    let given = of_guests.chain(of_nested).collect::<anyhow::Result<Vec<GuestSymbols>>>()?;
    let stacks = if args.raw { GuestStacks::Raw } else { GuestStacks::Corrected };
    let code = match args.by.0 {
        ProfileBy::Instruction => {
            Some(recordings.iter().map(kernel_code).collect::<anyhow::Result<Vec<_>>>()?)
        }
        _ => None,
    };
    let profile = reading(session, 1, |progress| {
        let question = ProfileQuestion { samples: &samples, given: &given, stacks };
        match &code {
            Some(code) => {
                let code = (code.as_slice(), args.context.unwrap_or(0).into());
                profile_of_instructions(session.view(), question, code, progress)
            }
            None => profile(session.view(), question, progress),
        }
    });
    each_names_a_vm(&given, &profile)?;
    Ok(profile)
}

/// The code of a recorded machine's kernel, if its recorder kept it.
fn kernel_code(recording: &Recording) -> anyhow::Result<Option<KernelCode>> {
    let Some(path) = sources::kernel_code_file(recording.path()) else { return Ok(None) };
    KernelCode::open(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// The requested files besides the report.
struct Outputs {
    flame: Option<Output>,
    folded: Option<Output>,
    pprof: Option<Output>,
    speedscope: Option<Output>,
}

impl Outputs {
    fn create(args: &ProfileArgs, session: &Session) -> anyhow::Result<Self> {
        let created = |path: &Option<PathBuf>| create_extra(path.as_deref(), session.recordings());
        Ok(Self {
            flame: created(&args.flame)?,
            folded: created(&args.folded)?,
            pprof: created(&args.pprof)?,
            speedscope: created(&args.speedscope)?,
        })
    }

    fn write(self, report: &ProfileReport, title: &str) -> anyhow::Result<()> {
        write_extra(self.flame, "the flame graph", || Ok(report.flame(title).into_bytes()))?;
        write_extra(self.folded, "the stacks", || Ok(report.folded().into_bytes()))?;
        write_extra(self.pprof, "the profile for pprof", || report.pprof())?;
        write_extra(self.speedscope, "the profile for speedscope", || {
            Ok(report.speedscope(title).into_bytes())
        })
    }
}
