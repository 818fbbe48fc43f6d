//! Starts and ends the host's recording of a guest that reports its own events, and counts its content.

use std::path::Path;

use analyses::contents::contents;
use analyses::hypertrace::{
    Carrier, GuestEvent, GuestEventSink, HypertraceFiles, VcpuThread, hypertrace,
};
use hypertrace::{Event, Kind, NUMBER};

use super::Subject;
use super::subject::GETPRIORITY;
use super::tracer::{InGuest, OnHost, Setup};
use crate::bench::error::{BenchError, Result};
use crate::bench::machines::{BootedMachine, FOLDER, Running};

/// The tracefs instance of runs without a reader.
const INSTANCE: &str = "/sys/kernel/tracing/instances/bench";
/// Page size of the lab's x86 machines.
const PAGE_BYTES: u64 = 4096;
/// Size of a hypercall in a buffer, with other data recorded for it.
const BYTES_A_HYPERCALL: u64 = 64;
/// A recording fills its buffer this often, so that little is left in it at the end.
const FILLINGS: u64 = 4;
/// Min buffer size of a recording.
const MIN_KIB: u64 = 32;
/// The recorded event in addition to frames in memory, which never occurs here.
const NOTHING: &str = "kvm:kvm_hv_hypercall";

/// A running recording.
#[derive(Debug)]
pub(crate) enum Recording {
    None,
    Buffer,
    Recorder(Running),
    Taker(Running),
}

/// Content of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostRecording {
    /// Events that the host recorded.
    pub(crate) events: u64,
    /// Size of their pages.
    pub(crate) bytes: u64,
    pub(crate) events_lost: u64,
    pub(crate) subject_events: u64,
}

/// Erases the magic number of the frames in a guest's shared memory: the module then lays it out again.
pub(crate) fn wipe(level: u8, host: &mut BootedMachine) -> Result<()> {
    let script = format!(
        "cd /run/lab/l{level} && pages=$(($(stat -L -c %s memory) / 4096)) && \
         dd if=/dev/zero of=memory bs=4096 seek=$((pages / 4 * 3)) count=1 conv=notrunc 2>/dev/null"
    );
    host.shell(&script).map(drop)
}

/// Starts a recording for a guest at `level` whose subject causes `subject_events`.
pub(crate) fn begin(
    setup: Setup,
    level: u8,
    subject_events: u64,
    host: &mut BootedMachine,
) -> Result<Recording> {
    match setup.host {
        OnHost::Nothing => Ok(Recording::None),
        OnHost::Buffer => {
            host.shell(&format!(
                "mkdir {INSTANCE} && cd {INSTANCE} && echo x86-tsc > trace_clock && \
                 echo 1 > events/kvm/kvm_hypercall/enable"
            ))?;
            Ok(Recording::Buffer)
        }
        OnHost::Taker => {
            let script = format!(
                "rm -rf {FOLDER}/session; exec hyperscope record -e {NOTHING} --buffer 64 \
                 --hypertrace guest=shm:/run/lab/l{level}/memory -o {FOLDER}/session"
            );
            start(&script, host).map(Recording::Taker)
        }
        OnHost::Recorder(events) => {
            let buffer = buffer_kib(setup.guest, events.len(), subject_events);
            let events: Vec<String> = events.iter().map(|event| format!("-e {event}")).collect();
            let script = format!(
                "rm -rf {FOLDER}/session; exec hyperscope record {} --buffer {buffer} \
                 -o {FOLDER}/session",
                events.join(" ")
            );
            start(&script, host).map(Recording::Recorder)
        }
    }
}

fn start(script: &str, host: &mut BootedMachine) -> Result<Running> {
    host.start(script, &format!("{FOLDER}/recorder.log"), "hyperscope: recording")
}

/// A buffer size that the guest's data fills several times.
fn buffer_kib(guest: InGuest, kinds: usize, subject_events: u64) -> u64 {
    let InGuest::Module(module) = guest else { return MIN_KIB };
    // About eight fit in a hypercall.
    let each = if module.events == 0 { 8 } else { u64::from(module.events) };
    let kinds = u64::try_from(kinds).unwrap_or(1);
    let bytes = (subject_events / each).saturating_mul(BYTES_A_HYPERCALL).saturating_mul(kinds);
    (bytes / FILLINGS / 1024).max(MIN_KIB)
}

/// Ends it, and counts its content; files go through the folder.
pub(crate) fn end(
    recording: Recording,
    subject: Subject,
    host: &mut BootedMachine,
    folder: &Path,
) -> Result<Option<HostRecording>> {
    match recording {
        Recording::None => Ok(None),
        Recording::Buffer => host.shell(&format!("rmdir {INSTANCE}")).map(|_| None),
        Recording::Recorder(recorder) => {
            host.end(recorder, "INT")?;
            let file = folder.join("host.dat");
            host.get(&format!("{FOLDER}/session/host.dat"), &file)?;
            inspect(subject, &file).map(Some)
        }
        Recording::Taker(recorder) => {
            host.end(recorder, "INT")?;
            let pattern = subject.json_pattern();
            let output = host.shell(&format!(
                "cd {FOLDER} && wc -c < session/guest-guest.hypertrace && \
                 (hyperscope hypertrace --format jsonl session 2>/dev/null | grep -c '{pattern}' || true)"
            ))?;
            let mut numbers = output.lines().map(|line| line.trim().parse::<u64>());
            let (Some(Ok(bytes)), Some(Ok(subject_events))) = (numbers.next(), numbers.next())
            else {
                return Err(BenchError::Malformed { what: "hyperscope hypertrace", text: output });
            };
            Ok(Some(HostRecording { events: 0, bytes, events_lost: 0, subject_events }))
        }
    }
}

fn inspect(subject: Subject, file: &Path) -> Result<HostRecording> {
    let unreadable = |source| BenchError::Recording { variant: "the host", source };
    let host = sources::open(file).map_err(unreadable)?;
    let contents = contents(&host, &|_| {});
    let mut counter = SubjectCounter { subject, count: 0 };
    hypertrace(
        std::slice::from_ref(&host),
        HypertraceFiles::default(),
        NUMBER,
        &mut counter,
        &|_| {},
    );
    Ok(HostRecording {
        events: contents.total(),
        bytes: contents.cpus.iter().map(|cpu| cpu.pages * PAGE_BYTES).sum(),
        events_lost: contents.events_lost() + contents.uncounted_losses(),
        subject_events: counter.count,
    })
}

/// Counts the subject's events.
struct SubjectCounter {
    subject: Subject,
    count: u64,
}

impl GuestEventSink for SubjectCounter {
    fn event(&mut self, _: VcpuThread, event: &GuestEvent, _: &Carrier) {
        if let GuestEvent::Event(event) = event {
            self.count += u64::from(is_of_subject(self.subject, event));
        }
    }
}

fn is_of_subject(subject: Subject, event: &Event) -> bool {
    match (subject, &event.kind) {
        (Subject::Syscalls, Kind::Syscall { number, .. }) => *number == GETPRIORITY,
        (Subject::Switches, Kind::Switch { .. }) => {
            let name = labguest::wire::LOAD_THREAD.as_bytes();
            event.running.is_some_and(|task| task.comm().starts_with(name))
        }
        _ => false,
    }
}
