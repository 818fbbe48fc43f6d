//! `hyperscope record`: records this host until a signal ends it.

mod alerts;
mod calls;
mod command;
mod flight;
mod kvm_events;
mod stops;
mod watch;
mod why;

use std::io::{self, IsTerminal, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use os::confine::CapabilitySet;
use printable::messages;
use recorder::{
    Finished, Hypercalls, InGuests, Profile, RecordPlan, Recording, Sampling, SessionFolder, Stop,
};
use report::plural;
use session_json::{CpuLosses, GuestSummary, ModuleSummary, Recorded, SamplerSummary};

pub(crate) use ::command::signals::stop_at_signals;

use self::command::{Runner, RunningCommand};
use self::stops::Phase;
use crate::args::record::RecordArgs;
use crate::channel_exits;
use ::command::progress::Progress;
use ::command::verb::{Memory, Range, VerbArgs};
use session::Misuse;

/// Default name of sessions' folders: hyperscope.hscope, hyperscope-1.hscope and so on.
const SESSION: &str = "hyperscope";
/// Default folder of a flight recorder's sessions.
const FLIGHT: &str = "flight";
/// Interval of progress lines on a terminal.
const LINE: Duration = Duration::from_millis(500);
/// Interval of checks whether the recording failed; each check costs CPU time of the recorder.
const LOOK: Duration = Duration::from_secs(2);

impl VerbArgs for RecordArgs {
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

fn run(args: &RecordArgs) -> anyhow::Result<ExitCode> {
    if let Some(pid) = args.guard {
        return guard(pid).map(|()| ExitCode::SUCCESS);
    }
    refuse_nested_writes(args)?;
    let plan = plan(args)?;
    let above = args.output.as_deref().and_then(Path::parent);
    let above = above.filter(|above| !above.as_os_str().is_empty());
    let finished = recorder::finish_left_overs(above.unwrap_or(Path::new(".")))?;
    finished.iter().for_each(report_finished);
    let session = take(args)?;
    let owner = session.claim().inspect_err(|_| session.abandon())?;
    let guard = Guard::start();
    let recorded = record(args, &plan, &session);
    // The folder may be gone: nothing was recorded.
    let ended = if recorded.is_err() { session.end().or(Ok(())) } else { session.end() };
    drop(owner);
    // The guard waits until this recorder no longer owns its instance.
    drop(guard);
    recorded.and_then(|code| ended.map(|()| code).map_err(Into::into))
}

/// Uses the named folder, or creates one.
fn take(args: &RecordArgs) -> anyhow::Result<SessionFolder> {
    let modes = args.mode.unwrap_or_default();
    if args.flight.flight.is_none() {
        return Ok(match &args.output {
            Some(to) => SessionFolder::take(to, modes)?,
            None => SessionFolder::make_numbered(SESSION, modes)?,
        });
    }
    let to = args.output.as_deref().unwrap_or(Path::new(FLIGHT));
    let (folder, leftover) = SessionFolder::take_for_flight(to, modes)?;
    if let Some(leftover) = leftover {
        let _ = writeln!(
            messages(),
            "hyperscope: the data of a killed flight recorder was saved to {}",
            leftover.display()
        );
    }
    Ok(folder)
}

/// Reports the outcome of finishing a killed recorder's session.
fn report_finished(finished: &Finished) {
    let Finished { pid, saved, result } = finished;
    let (mut err, saved) = (io::stderr().lock(), saved.display());
    // The error concerns another recording: this one continues.
    let _ = match result {
        Ok(bytes) => {
            let kib = bytes >> 10;
            writeln!(
                err,
                "hyperscope: a recorder was killed (process {pid}): its last {kib} KiB of pages were saved to {saved}"
            )
        }
        Err(error) => writeln!(
            err,
            "hyperscope: a recorder was killed (process {pid}): its last events can't be written to {saved}: {}; they stay in the tracefs instance hyperscope-{pid}. The next recorder tries again; rmdir in tracefs/instances discards them",
            printable::with_causes(error)
        ),
    };
}

/// Records; returns the code of the command whose end stopped the recording, if there is one.
fn record(
    args: &RecordArgs,
    plan: &RecordPlan,
    session: &SessionFolder,
) -> anyhow::Result<ExitCode> {
    let stop = Stop::new()?;
    let phase = stops::heed_signals(&stop, session.path())?;
    if args.flight.flight.is_some() {
        flight::record(args, plan.clone(), session, &stop)?;
        return Ok(ExitCode::SUCCESS);
    }
    let command = Runner::new(&args.command)?;
    report_start(plan);
    let recording = Recording::begin(plan, session, &stop).inspect_err(|_| session.abandon())?;
    report(&recording);
    kvm_events::warn_of_none(plan, recording.events());
    let running = match start_command(command, &recording, &stop) {
        Ok(running) => running,
        Err(error) => {
            recording.undo();
            session.abandon();
            return Err(error);
        }
    };
    report_unconfined();
    wait(&recording, args.time, &stop);
    end(recording, session, &phase)?;
    Ok(running.and_then(|command| command.exit_code()).map_or(ExitCode::SUCCESS, ExitCode::from))
}

/// Starts the command, if there is one, and drops privileges that are no longer needed.
fn start_command(
    command: Option<Runner>,
    recording: &Recording,
    stop: &Stop,
) -> anyhow::Result<Option<RunningCommand>> {
    let running = command.map(|command| command.run(stop)).transpose()?;
    recording.confine_caller()?;
    Ok(running)
}

/// Explains why changes by hypervisors can't be recorded, if so.
fn refuse_nested_writes(args: &RecordArgs) -> anyhow::Result<()> {
    if args.nested_writes && !Path::new("/sys/module/kvm_amd").exists() {
        bail!(
            "--nested-writes: the module kvm_amd isn't loaded. This option works only with SVM's control blocks; on Intel, no event shows the fields of VMREAD and VMWRITE"
        );
    }
    Ok(())
}

fn plan(args: &RecordArgs) -> anyhow::Result<RecordPlan> {
    let usual = (args.events.is_empty() && !args.hypercalls).then_some(Profile::Exits);
    let (number, words) = (args.hypercall_number, args.hypercall_words);
    Ok(RecordPlan {
        hypercalls: args.hypercalls.then_some(Hypercalls { number, words }),
        sampling: args
            .sample_hz
            .map(|hz| Sampling { hz, event: args.sample_event.map(Into::into) }),
        events: args.events.clone(),
        profile: args.profile.map(Profile::from).or(usual),
        probes: probes(args),
        tracer: args.tracer.function_tracer()?,
        vm: args.vm.clone(),
        clock: args.clock.clone(),
        buffer_kib: args.buffer,
        quota_bytes: args.quota,
        flush: args.flush,
        flight: None,
        guests: args.guests.clone(),
        modules: args.modules.clone(),
        in_guests: in_guests(args)?,
    })
}

fn probes(args: &RecordArgs) -> Vec<String> {
    let extra_probe = args.nested_writes.then(|| recorder::NESTED_WRITES.to_owned());
    args.kprobes.iter().cloned().chain(extra_probe).collect()
}

/// The events recorded in guests: the requested ones, otherwise the same as on the host if they have them.
fn in_guests(args: &RecordArgs) -> anyhow::Result<InGuests> {
    let usual = args.profile.map_or(Profile::Exits, Profile::from).in_guests();
    Ok(InGuests {
        events: args.guest_events.clone(),
        profile: args.guest_events.is_empty().then_some(usual),
        probes: args.guest_kprobes.clone(),
        tracer: args.guest_tracer.function_tracer()?,
        sampling: guest_sampling(args)?,
        filters: args.guest_filters.clone(),
        boot: args.guest_boot,
        flush: args.guest_flush,
        disk_flush: args.flush,
        buffer_kib: args.guest_buffer,
        quota_bytes: args.guest_quota,
        wait: args.guest_wait,
        begins_within: None,
        in_segments: false,
    })
}

/// Sampling of guests, out of step with their host.
fn guest_sampling(args: &RecordArgs) -> anyhow::Result<Option<Sampling>> {
    let Some(hz) = args.guest_sample_hz else { return Ok(None) };
    if let Some(host_hz) = args.sample_hz
        && (hz.is_multiple_of(host_hz) || host_hz.is_multiple_of(hz))
    {
        bail!(Misuse(format!(
            "host and guests at {host_hz} and {hz} Hz would sample each other's sampling: use rates of which neither is a multiple of the other, such as 499 and 397"
        )));
    }
    Ok(Some(Sampling { hz, event: args.sample_event.map(Into::into) }))
}

/// Reports immediately what the start waits for: setting up tracing takes a second or two, and guests may
/// take longer.
fn report_start(plan: &RecordPlan) {
    let guests: Vec<String> = plan.guests.iter().map(|guest| printable::label(guest)).collect();
    let agents_note = match guests.as_slice() {
        [] => String::new(),
        guests => format!(", and contacting the agents of {}", guests.join(", ")),
    };
    let _ = writeln!(messages(), "hyperscope: setting up tracing{agents_note}");
}

/// Reports what is recorded.
fn report(recording: &Recording) {
    let mut err = messages();
    let _ = writeln!(
        err,
        "hyperscope: recording {} on {}, buffers of {} KiB, clock {}",
        plural(recording.events().len() as u64, "event"),
        plural(recording.cpus() as u64, "CPU"),
        recording.buffer_kib(),
        recording.clock()
    );
    if let Some((name, functions)) = recording.tracer() {
        calls::report(name, functions, &mut err);
    }
    for vm in recording.vms() {
        let _ = writeln!(
            err,
            "hyperscope: VM {}: {}, process {}, {}",
            vm.name,
            vm.program,
            vm.pid,
            plural(vm.vcpus.len() as u64, "vCPU")
        );
    }
}

/// Reports why threads could not be confined, if so; the recording continues.
pub(crate) fn report_unconfined() {
    if let Some(why) = os::confine::failure() {
        let _ = writeln!(
            messages(),
            "hyperscope: threads that read guests' data could not drop privileges: {why}"
        );
    }
}

/// Waits until the time is over, the command has ended, or a signal arrives.
fn wait(recording: &Recording, time: Option<Duration>, stop: &Stop) {
    let shown = io::stderr().is_terminal();
    let mut reported = 0;
    // The time starts once all running guests record, so that their part has the requested length.
    let start = Instant::now();
    loop {
        // There are few guests to wait for, and each is reported as it starts.
        let is_waiting = recording.guest_names().len() < recording.guests_asked();
        let interval = if shown || is_waiting { LINE } else { LOOK };
        let remaining = time.map(|time| time.saturating_sub(start.elapsed()));
        if remaining.is_some_and(|remaining| remaining.is_zero()) || recording.has_failed() {
            break;
        }
        report_guests(recording, &mut reported);
        if shown {
            show(recording);
        }
        if stop.wait(remaining.map_or(interval, |remaining| remaining.min(interval))) {
            break;
        }
    }
    if shown {
        let _ = write!(io::stderr().lock(), "\r\x1b[K");
    }
}

/// Reports recorded guests: at first all, then each one that starts later.
fn report_guests(recording: &Recording, reported: &mut usize) {
    let (names, channels) = (recording.guest_names(), recording.guest_channels());
    for (name, channel) in names.iter().zip(channels).skip(*reported) {
        let _ = writeln!(messages(), "hyperscope: guest {name}: recording over {channel}");
    }
    *reported = names.len();
}

/// Prints a single line that is overwritten again and again.
fn show(recording: &Recording) {
    let progress = recording.progress();
    let (time, mib) = (progress.time.as_secs_f64(), progress.bytes >> 20);
    let mut err = io::stderr().lock();
    let _ = write!(
        err,
        "\r\x1b[K{time:.1} s  {mib} MiB{}  {}  Ctrl-C ends it",
        guests(&progress),
        events_lost(progress.lost)
    );
    let _ = err.flush();
}

/// The guests in a line of progress.
fn guests(progress: &recorder::Progress) -> String {
    let over = match progress.guests_over {
        0 => String::new(),
        1 => "  1 guest is no longer recorded".into(),
        many => format!("  {many} guests are no longer recorded"),
    };
    match progress.guest_bytes >> 20 {
        0 => over,
        mib => format!(" + {mib} MiB of guests{over}"),
    }
}

fn end(recording: Recording, session: &SessionFolder, phase: &Phase) -> anyhow::Result<()> {
    let bytes = recording.progress().bytes;
    let bar = Progress::new(bytes);
    let mut recorded = recording.end(&|bytes| bar.advance(bytes)).with_context(|| {
        let to = session.path().display();
        match session.place() {
            Some(place) => format!(
                "the recording could not be completed; {} holds the data written so far, and can be read",
                place.display()
            ),
            None => format!("the recording could not be completed: its folder {to} was removed during recording"),
        }
    })?;
    bar.finish();
    phase.is_complete();
    let Some(place) = session.place() else {
        let to = session.path().display();
        bail!("the recording is lost: its folder {to} was removed during recording");
    };
    if place != session.path() {
        let (to, now) = (session.path().display(), place.display());
        let _ = writeln!(messages(), "hyperscope: {to} was moved during recording, to {now}");
        return conclude(&recorded, &place);
    }
    if let Err(error) = channel_exits::count(&mut recorded, session) {
        let _ = writeln!(messages(), "hyperscope: {error:#}");
    }
    calls::count_them(&mut recorded, session)?;
    conclude(&recorded, session.path())
}

/// Reports the result of the recording.
fn conclude(recorded: &Recorded, to: &Path) -> anyhow::Result<()> {
    let mut err = messages();
    for fault in &recorded.faults {
        writeln!(err, "hyperscope: {fault}")?;
    }
    let lost = losses(recorded.cpus.iter().map(CpuLosses::events).sum(), &recorded.faults);
    let bytes: u64 = recorded.cpus.iter().map(|cpu| cpu.bytes).sum();
    #[allow(clippy::cast_precision_loss, reason = "shown with one decimal")]
    let (seconds, cost) =
        (recorded.duration_ns as f64 / 1e9, recorded.recorder_cpu_ns as f64 / 1e6);
    writeln!(
        err,
        "hyperscope: {seconds:.1} s, {} KiB of pages, {lost}, {cost:.1} ms of CPU time for recording",
        bytes >> 10
    )?;
    calls::conclude(recorded, &mut err)?;
    if let Some(collector) = &recorded.collector {
        writeln!(
            err,
            "hyperscope: {} collected, {} KiB, {} lost",
            plural(collector.hypercalls, "hypercall"),
            collector.bytes >> 10,
            collector.lost()
        )?;
    }
    if let Some(sampler) = &recorded.sampler {
        writeln!(err, "hyperscope: {}", samples(sampler))?;
    }
    for guest in &recorded.guests {
        conclude_guest(guest, Some(recorded.duration_ns), &mut err)?;
    }
    for module in &recorded.modules {
        conclude_module(module, &mut err)?;
    }
    writeln!(err, "hyperscope: session: {}", to.display())?;
    let is_whole = recorded.guests.iter().all(|guest| guest.faults.is_empty())
        && recorded.modules.iter().all(|module| module.faults.is_empty());
    if is_whole && recorded.faults.is_empty() {
        Ok(())
    } else {
        bail!("the recording is incomplete")
    }
}

fn events_lost(number: u64) -> String {
    raw_bytes::counted(number, "event", "events") + " lost"
}

/// Describes missing events in the words of the session.
fn losses(counted: u64, faults: &[String]) -> String {
    match (counted, faults) {
        (0, [_, ..]) => "an unknown number of events lost".to_owned(),
        (_, []) => events_lost(counted),
        _ => events_lost(counted) + ", plus an unknown number",
    }
}

/// Reports the result of a guest.
pub(crate) fn conclude_guest(
    guest: &GuestSummary,
    of_ns: Option<u64>,
    err: &mut impl Write,
) -> io::Result<()> {
    for fault in &guest.faults {
        writeln!(err, "hyperscope: guest {}: {fault}", guest.name)?;
    }
    let missing = match guest.bytes_lost() {
        0 => String::new(),
        bytes => format!(", {} KiB of pages missing", bytes.div_ceil(1024)),
    };
    let lost = guest.events_lost().map(|lost| lost.saturating_add(guest.events_missing()));
    let lost = lost.map(|lost| format!(", {}", losses(lost, &guest.faults))).unwrap_or_default();
    writeln!(
        err,
        "hyperscope: guest {}: {}{} KiB of pages{lost}{missing}{}",
        guest.name,
        covered(guest, of_ns),
        guest.bytes() >> 10,
        cost(guest)
    )?;
    match &guest.sampler {
        Some(sampler) if sampler.bytes > 0 => {
            writeln!(err, "hyperscope: guest {}: {}", guest.name, samples(sampler))
        }
        _ => Ok(()),
    }
}

/// The recorded time of a guest, out of its host's.
fn covered(guest: &GuestSummary, of_ns: Option<u64>) -> String {
    #[allow(clippy::cast_precision_loss, reason = "shown with one decimal")]
    let seconds = |ns: u64| ns as f64 / 1e9;
    match (guest.recorded_ns.map(seconds), of_ns.map(seconds)) {
        (Some(time), Some(total)) => format!("{time:.1} s of {total:.1} s, "),
        (Some(time), None) => format!("{time:.1} s, "),
        (None, _) => String::new(),
    }
}

fn samples(sampler: &SamplerSummary) -> String {
    let lost = sampler.lost.map_or_else(|| "unknown".to_owned(), |lost| lost.to_string());
    let samples =
        sampler.samples.map_or_else(|| "samples".to_owned(), |count| plural(count, "sample"));
    let event = sampler.event.as_ref().map(|event| format!(" of {event}")).unwrap_or_default();
    let unread = sampler.earlier.map_or(0, |earlier| earlier.left_out);
    let unread = if unread == 0 {
        String::new()
    } else {
        format!(", {} of code without symbols: too many files to read", plural(unread, "mapping"))
    };
    format!("{samples}{event}, {} KiB, {lost} lost{unread}", sampler.bytes >> 10)
}

/// Reports the result of a guest's module.
fn conclude_module(module: &ModuleSummary, err: &mut impl Write) -> io::Result<()> {
    let name = &module.name;
    for fault in &module.faults {
        writeln!(err, "hyperscope: module of {name}: {fault}")?;
    }
    let noted = |count: u64, what: &str| match count {
        0 => String::new(),
        count => format!(", {count} {what}"),
    };
    writeln!(
        err,
        "hyperscope: module of {name}: {} frames of {} CPUs, {} KiB{}{}",
        module.frames,
        module.cpus,
        module.bytes >> 10,
        noted(module.frames_missed, "frames missed"),
        noted(module.damage, "damaged places")
    )
}

/// The cost of recording, as the agent reports it.
fn cost(guest: &GuestSummary) -> String {
    let (Some(cpu_ns), Some(wakeups)) = (guest.agent_cpu_ns, guest.agent_wakeups) else {
        return String::new();
    };
    #[allow(clippy::cast_precision_loss, reason = "shown with one decimal")]
    let cpu_ms = cpu_ns as f64 / 1e6;
    let exits = guest.channel_exits.map(|exits| format!(", {exits} exits of its channel"));
    let exits = exits.unwrap_or_default();
    format!(", {cpu_ms:.1} ms of CPU time and {wakeups} wake-ups of its agent{exits}")
}

/// A process that cleans up if this one is killed, which it detects by the end of a pipe.
pub(crate) struct Guard(Option<Child>);

impl Guard {
    /// Starts it for this process. Its tasks are in the file of this process as an owner of instances.
    pub(crate) fn start() -> Self {
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
        // Without it, the next recording cleans up.
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
    // It may have to save remaining pages into another user's folder, and to unmount.
    let needed = CapabilitySet::CHOWN
        | CapabilitySet::DAC_OVERRIDE
        | CapabilitySet::DAC_READ_SEARCH
        | CapabilitySet::SYS_ADMIN;
    // It guards even if the kernel refuses.
    let _ = os::confine::keep_only(needed);
    io::stdin().lock().read_to_end(&mut Vec::new())?;
    Ok(recorder::clean_up(pid)?)
}
