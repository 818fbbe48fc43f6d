//! `hyperscope lab`: virtual hosts and guests.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use lab::{
    Accelerator, Arch, Cache, Description, Ended, Exec, Lab, Outputs, Put, Session, UpOptions,
};
use printable::messages;

use crate::args::lab::{
    AcceleratorArg, LabConsoleArgs, LabExecArgs, LabGetArgs, LabPutArgs, LabShapeArgs, LabUpArgs,
};
use crate::args::lab::{LabArgs, LabVerb};
use crate::lab_steps::LabSteps;
use command::output;
use command::verb::{Memory, Range, VerbArgs};

mod boot_events;
mod corpus;
pub(crate) mod interrupted;
mod run;
mod truth;

impl VerbArgs for LabArgs {
    fn memory(&self) -> Memory {
        Memory::Unbounded
    }

    fn range(&self) -> Range {
        Range::Whole
    }

    fn run(&self) -> anyhow::Result<ExitCode> {
        run(self)
    }
}

/// Runs the verb.
///
/// # Errors
/// When the lab fails; the message tells how to fix it.
fn run(args: &LabArgs) -> anyhow::Result<ExitCode> {
    let cache = Cache::locate(None)?;
    let lab = Lab::named(&cache, &args.name)?;
    match &args.verb {
        LabVerb::Up(up_args) => up(&lab, up_args)?,
        LabVerb::Exec(exec_args) => return exec(&mut lab.session(exec_args.level)?, exec_args),
        LabVerb::Put(put_args) => put(&mut lab.session(put_args.level)?, put_args)?,
        LabVerb::Get(get_args) => get(&mut lab.session(get_args.level)?, get_args)?,
        LabVerb::Console(console_args) => console(&lab, console_args)?,
        LabVerb::Monitor(monitor_args) => {
            let answer = lab.ask_monitor(
                monitor_args.level,
                &monitor_args.command,
                &monitor_args.arguments,
            )?;
            writeln!(io::stdout().lock(), "{answer:#}")?;
        }
        LabVerb::Status => status(&cache)?,
        LabVerb::Down => lab.down()?,
        LabVerb::Fetch(shape) => fetch(&cache, shape)?,
        LabVerb::Run(run_args) => run::run(&cache, &lab, run_args)?,
        LabVerb::Corpus(corpus_args) => return corpus::run(&cache, corpus_args),
        LabVerb::Clean => lab::clean(&cache)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn up(lab: &Lab, args: &LabUpArgs) -> anyhow::Result<()> {
    let mut wanted = description(&args.shape)?;
    wanted.cpus = args.cpus;
    wanted.memory_mib = args.memory.unwrap_or(wanted.memory_mib);
    wanted.guest.cpus = args.guest_cpus;
    wanted.guest.shm_mib = args.guest_shm;
    wanted.append = args.append.clone().unwrap_or_default();
    wanted.processor = args.processor.clone().unwrap_or_default();
    wanted.guest.append = args.guest_append.clone().unwrap_or_default();
    wanted.guest.qemu = args.guest_qemu.clone().unwrap_or_default();
    wanted.guest.net = args.guest_net.map(Into::into);
    wanted.guest.disk_mib = args.guest_disk;
    wanted.instruction_ns = args.instruction_ns;
    wanted.share = args.share.as_deref().map(absolute).transpose()?;
    wanted.accelerator = args.accel.map(|accel| match accel {
        AcceleratorArg::Kvm => Accelerator::Kvm,
        AcceleratorArg::Tcg => Accelerator::Tcg,
    });
    let options = UpOptions { offline: args.offline, snapshot: !args.no_snapshot };
    let _guard = interrupted::end_when_interrupted(lab)?;
    let steps = LabSteps::new();
    let up = lab.up(&wanted, &options, &|step| steps.show(&step));
    let took = steps.finish();
    let up = up?;
    let by = match up.accelerator {
        Some(Accelerator::Kvm) => "hardware KVM",
        _ => "QEMU's emulator",
    };
    let levels = if up.started == 1 {
        "level 1 is".into()
    } else {
        format!("levels 1 to {} are", up.started)
    };
    let text = format!("hyperscope: {levels} up after {:.1} s, with {by}", took.as_secs_f64());
    writeln!(messages(), "{text}")?;
    Ok(())
}

fn description(shape: &LabShapeArgs) -> anyhow::Result<Description> {
    let arch = shape.arch.map_or_else(Arch::native, Arch::from);
    let mut description = Description::new(arch, shape.levels);
    description.kernel = kernel(&shape.kernel, &shape.modules)?;
    description.guest_kernel = kernel(&shape.guest_kernel, &shape.guest_modules)?;
    description.root = shape.root.as_deref().map(absolute).transpose()?;
    Ok(description)
}

/// A kernel and its folder of modules, if both were given.
fn kernel(
    image: &Option<PathBuf>,
    modules: &Option<PathBuf>,
) -> anyhow::Result<Option<(PathBuf, PathBuf)>> {
    let (Some(image), Some(modules)) = (image, modules) else { return Ok(None) };
    Ok(Some((absolute(image)?, absolute(modules)?)))
}

fn absolute(path: &Path) -> anyhow::Result<PathBuf> {
    path.canonicalize().with_context(|| format!("cannot find {}", path.display()))
}

fn exec(session: &mut Session, args: &LabExecArgs) -> anyhow::Result<ExitCode> {
    let request = Exec {
        argv: args.command.clone(),
        env: std::collections::BTreeMap::new(),
        stdin: args.stdin,
        // The lab's timeouts are in milliseconds, and 0 would expire at once.
        timeout_ms: args
            .timeout
            .map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1)),
        detach_to: None,
    };
    session.start(&request)?;
    if args.stdin {
        // Only now: input before the command has no receiver.
        let input = session.input();
        std::thread::spawn(move || feed(&input));
    }
    let mut failed = Ok(());
    let mut failed_too = Ok(());
    let mut outputs = Outputs {
        stdout: &mut |bytes| write_all(&mut io::stdout().lock(), bytes, &mut failed),
        stderr: &mut |bytes| write_all(&mut io::stderr().lock(), bytes, &mut failed_too),
    };
    let ended = session.follow(&mut outputs)?;
    failed.and(failed_too)?;
    Ok(code(ended))
}

/// Gives the command all of standard input; the command may end before.
fn feed(input: &lab::Input) {
    let mut buffer = vec![0; 16 << 10];
    let mut stdin = io::stdin().lock();
    while let Ok(read) = stdin.read(&mut buffer) {
        let bytes = buffer.get(..read).unwrap_or_default();
        if bytes.is_empty() || input.bytes(bytes).is_err() {
            break;
        }
    }
    let _ = input.end();
}

fn write_all(to: &mut impl Write, bytes: &[u8], failed: &mut io::Result<()>) {
    if failed.is_ok() {
        *failed = to.write_all(bytes).and_then(|()| to.flush());
    }
}

/// The exit code, as in a shell.
fn code(ended: Ended) -> ExitCode {
    let number = match ended {
        Ended::Exit(code) => code,
        Ended::Signal(signal) => 128 + signal,
        Ended::TimedOut => 124,
        Ended::Detached(_) => 0,
    };
    u8::try_from(number).map_or(ExitCode::FAILURE, ExitCode::from)
}

fn put(session: &mut Session, args: &LabPutArgs) -> anyhow::Result<()> {
    let cannot = || format!("cannot read {}", args.from.display());
    let mut file = File::open(&args.from).with_context(cannot)?;
    let mode = file.metadata().with_context(cannot)?.permissions().mode() & 0o7777;
    Ok(session.put(&Put { path: args.to.clone(), mode }, &mut file)?)
}

fn get(session: &mut Session, args: &LabGetArgs) -> anyhow::Result<()> {
    if args.to == Path::new("-") {
        return Ok(session.get(&args.from, &mut io::stdout().lock())?);
    }
    let mut file = output::create(&args.to, [])?;
    session.get(&args.from, &mut file)?;
    file.complete()
}

/// Poll interval of a followed console.
const LOOK: Duration = Duration::from_millis(200);

fn console(lab: &Lab, args: &LabConsoleArgs) -> anyhow::Result<()> {
    lab.description()?;
    let mut shown = 0;
    loop {
        let text = lab.console(args.level)?;
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.get(shown..).unwrap_or_default())?;
        stdout.flush()?;
        shown = text.len();
        if !args.follow || !lab.is_up() {
            return Ok(());
        }
        std::thread::sleep(LOOK);
    }
}

fn status(cache: &Cache) -> anyhow::Result<()> {
    let labs = Lab::all(cache)?;
    let mut stdout = io::stdout().lock();
    if labs.is_empty() {
        writeln!(stdout, "no lab is up")?;
    }
    for lab in labs {
        let status = lab.status()?;
        let machines = status.description.map_or("unknown machines".to_owned(), |lab| {
            format!(
                "{} level{}, {}, {}",
                lab.started,
                if lab.started == 1 { "" } else { "s" },
                lab.arch,
                accelerator(lab.accelerator)
            )
        });
        let up = match (status.pid, status.since.and_then(|since| since.elapsed().ok())) {
            (Some(pid), Some(time)) => format!("up for {} s, process {pid}", time.as_secs()),
            (Some(pid), None) => format!("starting, process {pid}"),
            (None, _) => "ended: `hyperscope lab down` cleans up".to_owned(),
        };
        writeln!(stdout, "{}: {machines}; {up}", status.name)?;
    }
    Ok(())
}

fn accelerator(accelerator: Option<Accelerator>) -> &'static str {
    if accelerator == Some(Accelerator::Kvm) { "kvm" } else { "tcg" }
}

fn fetch(cache: &Cache, shape: &LabShapeArgs) -> anyhow::Result<()> {
    let steps = LabSteps::new();
    let fetched = lab::fetch(cache, &description(shape)?, &|step| steps.show(&step));
    steps.finish();
    Ok(fetched?)
}
