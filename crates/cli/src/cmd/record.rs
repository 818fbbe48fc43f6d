//! `hyperscope record`: records this host until told to stop.

use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};
use recorder::{Plan, Profile, Recorded, Recording};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::args::record::RecordArgs;
use crate::progress::Progress;

/// The session's folder, when none is named.
const SESSION: &str = "hyperscope.hscope";
/// How often it is looked whether to stop.
const LOOK: Duration = Duration::from_millis(50);
/// How many of those pass between two lines of progress.
const LOOKS_PER_LINE: u32 = 10;

pub(crate) fn run(args: &RecordArgs) -> anyhow::Result<()> {
    if let Some(pid) = args.guard {
        return guard(pid);
    }
    let to = args.output.clone().unwrap_or_else(|| SESSION.into());
    if recorder::holds_recording(&to) {
        bail!("{} holds a recording already; name another folder with -o", to.display());
    }
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("cannot handle signals")?;
    }
    let _guard = Guard::start();
    let recording = Recording::begin(&plan(args, to.clone()))?;
    tell(&recording);
    let mut command = start(&args.command)?;
    wait(&recording, args.time, command.as_mut(), &stop);
    end(recording, &to)
}

fn plan(args: &RecordArgs, to: PathBuf) -> Plan {
    let named = !args.events.is_empty() || !args.kprobes.is_empty();
    let usual = (!named).then_some(Profile::Exits);
    Plan {
        events: args.events.clone(),
        profile: args.profile.map(Profile::from).or(usual),
        probes: args.kprobes.clone(),
        vm: args.vm.clone(),
        clock: args.clock.clone(),
        buffer_kib: args.buffer,
        to,
    }
}

/// Says what is recorded.
fn tell(recording: &Recording) {
    let mut err = io::stderr().lock();
    let _ = writeln!(
        err,
        "hyperscope: recording {} events on {} CPUs, {} KiB of buffer each, clock {}",
        recording.events().len(),
        recording.cpus(),
        recording.buffer_kib(),
        recording.clock()
    );
    for vm in recording.vms() {
        let _ = writeln!(
            err,
            "hyperscope: VM {}: {}, process {}, {} vCPUs",
            vm.name,
            vm.program,
            vm.pid,
            vm.vcpus.len()
        );
    }
}

fn start(command: &[String]) -> anyhow::Result<Option<Child>> {
    let Some((program, arguments)) = command.split_first() else { return Ok(None) };
    let child = Command::new(program).args(arguments).spawn();
    child.map(Some).with_context(|| format!("cannot run {program}"))
}

/// Waits until the time is over, the command has ended, or a signal came.
fn wait(recording: &Recording, time: Option<Duration>, mut command: Option<&mut Child>, stop: &AtomicBool) {
    let shown = io::stderr().is_terminal();
    let mut looks = 0_u32;
    while !stop.load(Ordering::Relaxed) {
        let progress = recording.progress_time();
        let is_over = time.is_some_and(|time| progress >= time)
            || command.as_mut().is_some_and(|child| !matches!(child.try_wait(), Ok(None)));
        if is_over || recording.has_failed() {
            break;
        }
        if shown && looks.is_multiple_of(LOOKS_PER_LINE) {
            show(recording);
        }
        looks = looks.wrapping_add(1);
        std::thread::sleep(time.map_or(LOOK, |time| LOOK.min(time.saturating_sub(progress))));
    }
    if shown {
        let _ = write!(io::stderr().lock(), "\r\x1b[K");
    }
}

/// One line that is written over and over.
fn show(recording: &Recording) {
    let progress = recording.progress();
    let (time, mib) = (progress.time.as_secs_f64(), progress.bytes >> 20);
    let mut err = io::stderr().lock();
    let _ = write!(err, "\r\x1b[K{time:.1} s  {mib} MiB  {} events lost  Ctrl-C ends it", progress.lost);
    let _ = err.flush();
}

fn end(recording: Recording, to: &Path) -> anyhow::Result<()> {
    let bytes = recording.progress().bytes;
    let bar = Progress::new(bytes);
    let recorded = recording.end(&|bytes| bar.advance(bytes))?;
    bar.finish();
    conclude(&recorded, to)
}

/// Says what came of it.
fn conclude(recorded: &Recorded, to: &Path) -> anyhow::Result<()> {
    let mut err = io::stderr().lock();
    for fault in &recorded.faults {
        writeln!(err, "hyperscope: {fault}")?;
    }
    let lost: u64 = recorded.cpus.iter().map(recorder::CpuLosses::events).sum();
    let bytes: u64 = recorded.cpus.iter().map(|cpu| cpu.bytes).sum();
    #[allow(clippy::cast_precision_loss, reason = "shown with one decimal")]
    let (seconds, cost) = (recorded.duration_ns as f64 / 1e9, recorded.recorder_cpu_ns as f64 / 1e6);
    writeln!(
        err,
        "hyperscope: {seconds:.1} s, {} KiB of pages, {lost} events lost, {cost:.1} ms of CPU time for recording",
        bytes >> 10
    )?;
    writeln!(err, "hyperscope: session: {}", to.display())?;
    if recorded.faults.is_empty() { Ok(()) } else { bail!("not everything was recorded") }
}

/// A process that cleans up when this one is killed: the end of a pipe tells it.
struct Guard(Option<Child>);

impl Guard {
    fn start() -> Self {
        let pid = std::process::id().to_string();
        let program = std::env::current_exe();
        let child = program.and_then(|program| {
            use std::os::unix::process::CommandExt;
            Command::new(program)
                .args(["record", "--guard", &pid])
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .process_group(0)
                .spawn()
        });
        // Without it the next recording cleans up.
        Self(child.ok())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            drop(child.stdin.take());
            let _ = child.wait();
        }
    }
}

fn guard(pid: u32) -> anyhow::Result<()> {
    io::stdin().lock().read_to_end(&mut Vec::new())?;
    recorder::clean_up(pid);
    Ok(())
}
