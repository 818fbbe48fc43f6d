//! Records level 1 by `hyperscope record`, and its guest by `hyperscope-agent`,
//! both put there first.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use labguest::wire::{Ended, Put};

use crate::arch::Arch;
use crate::error::{LabError, Result, last_lines};
use crate::lab::Lab;
use crate::machine;
use crate::machine_programs;
use crate::scenario::{PROBES, Record};
use crate::session::{Outputs, Session, command};
use crate::start;

/// Where the program goes.
const PROGRAM: &str = "/bin/hyperscope";
/// Where its session goes.
const FOLDER: &str = "/tmp/record.hscope";
/// What it says once it records.
const BEGUN: &str = "hyperscope: recording";
/// What it says once a guest that it waited for is recorded.
const TAKEN: &str = "is recorded";
/// How long it waits for its guest after the end: one that is emulated in an emulated machine is slow.
const GUEST_WAIT: &str = "180s";
/// What it says of a guest that is gone.
const WENT_DOWN: &str = "its VM has ended";
/// The signal that ends it (SIGINT).
const INTERRUPT: i32 = 2;
/// How long it may take to begin, and to write what it recorded.
const PATIENCE: Duration = Duration::from_secs(120);

/// Where the agent goes, in the guest.
const AGENT: &str = "/bin/hyperscope-agent";
/// Ends one that runs; its file can't be written before that.
const END_AGENT: &str = "while killall hyperscope-agent 2>/dev/null; do sleep 0.05; done";
/// What the agent says once it waits.
const WAITING: &str = "until grep -q 'waiting on' /tmp/agent.log; do sleep 0.1; done";

/// Prints where threads of recorders and of QEMU are in the kernel, and how long they have run.
const WHERE: &str = "for task in $(pidof hyperscope qemu-system-x86_64 | tr ' ' '\\n' | \
    while read pid; do echo /proc/$pid/task/*; done); do
        echo \"$(cat $task/comm): $(sed 's/.*) //' $task/stat | cut -d' ' -f1,12,13) $(head -n 4 $task/stack | tr '\\n' ' ')\"
    done; cat /proc/loadavg";
/// How long level 1 may take to say so.
const ASKED: Duration = Duration::from_secs(30);

/// A running recording.
pub(crate) struct HyperscopeRecording {
    session: Session,
    output: String,
    has_guest: bool,
    has_module: bool,
    has_hypercalls: bool,
    has_samples: bool,
    has_guest_samples: bool,
}

/// Whether hyperscope runs in level 1: it was built for the lab's architecture, and needs a C library
/// that is not older than this system's. For a guest the agent must have been built, too.
pub(crate) fn can_run(lab: &Lab, arch: Arch, record: &Record) -> Result<bool> {
    let has_agent = !record.has_guest() || machine_programs::agent(arch).is_some();
    // Scenarios name probes as trace-cmd does: `kprobes:FUNCTION`.
    let names_probes = record.events.iter().any(|event| event == PROBES);
    let Some(program) = machine_programs::hyperscope(arch).filter(|_| has_agent && !names_probes)
    else {
        return Ok(false);
    };
    let mut session = lab.session(1)?;
    put(&mut session, &program, PROGRAM)?;
    Ok(session.check(&[PROGRAM, "--version"], PATIENCE).is_ok())
}

impl HyperscopeRecording {
    /// Begins to record level 1 of a lab in which hyperscope runs.
    pub(crate) fn begin(lab: &Lab, record: &Record) -> Result<Self> {
        let has_guest = record.has_guest();
        let has_module = record.guest_module;
        // One that boots is recorded by its kernel until it has an agent.
        if has_guest && !record.guest_boot {
            start_agent(lab)?;
        }
        let mut session = lab.session(1)?;
        session.check(&["rm", "-rf", FOLDER], PATIENCE)?;
        let memory = memory(lab)?;
        let words = words(record, memory.as_deref());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut exec = command(&words, PATIENCE);
        // It ends when it gets a signal.
        exec.timeout_ms = None;
        session.start(&exec)?;
        let (has_hypercalls, has_samples) = (record.hypercalls, record.sample_hz.is_some());
        let mut recording = Self {
            session,
            output: String::new(),
            has_guest,
            has_module,
            has_hypercalls,
            has_samples,
            has_guest_samples: record.guest_sample_hz.is_some(),
        };
        recording.wait_for(BEGUN, lab)?;
        Ok(recording)
    }

    /// Has the guest that booted meanwhile recorded, too: what its kernel recorded by itself, and what
    /// comes.
    pub(crate) fn take_guest(&mut self, lab: &Lab) -> Result<()> {
        start_agent(lab)?;
        self.wait_for(TAKEN, lab)
    }

    /// Waits until it says something.
    fn wait_for(&mut self, word: &str, lab: &Lab) -> Result<()> {
        self.session.limit();
        while !self.output.contains(word) {
            match self.attend() {
                Ok(Some(ended)) => return Err(self.failed(ended)),
                Ok(None) => {}
                Err(LabError::Channel { .. }) => {
                    return Err(self.stands_still("it did not start", lab));
                }
                Err(error) => return Err(error),
            }
        }
        self.session.unlimit();
        Ok(())
    }

    /// Ends the recording; the file is complete then.
    pub(crate) fn end(mut self, lab: &Lab) -> Result<Vec<(String, &'static str)>> {
        let sent = self.session.input().signal(INTERRUPT);
        sent.map_err(|error| LabError::Channel { level: 1, source: error.into() })?;
        self.session.limit();
        let ended = loop {
            match self.attend() {
                Ok(Some(ended)) => break ended,
                Ok(None) => {}
                Err(LabError::Channel { .. }) => {
                    return Err(self.stands_still("it did not end", lab));
                }
                Err(error) => return Err(error),
            }
        };
        // A guest that a scenario shuts down is recorded to its end.
        let went_down = self.has_guest && self.output.contains(WENT_DOWN);
        if ended != Ended::Exit(0) && !went_down {
            return Err(self.failed(ended));
        }
        let file = |name: &'static str| (format!("{FOLDER}/{name}"), name);
        let guest = self.has_guest.then(|| file("guest-l2.dat"));
        let module = self.has_module.then(|| file("guest-l2.hypertrace"));
        let hypercalls = self.has_hypercalls.then(|| file("host.collected"));
        let samples = ["host.data", "host.clock", "host.kcore"]
            .into_iter()
            .filter(|_| self.has_samples)
            .map(file);
        let guest_samples = ["guest-l2.data", "guest-l2.clock", "guest-l2.kcore"].into_iter();
        let guest_samples = guest_samples.filter(|_| self.has_guest_samples).map(file);
        let always = [file("host.dat"), file("session.json")];
        let requested_files =
            guest.into_iter().chain(module).chain(hypercalls).chain(samples).chain(guest_samples);
        Ok(always.into_iter().chain(requested_files).collect())
    }

    fn attend(&mut self) -> Result<Option<Ended>> {
        let Self { session, output, .. } = self;
        let mut outputs = Outputs {
            stdout: &mut |_| {},
            stderr: &mut |bytes| output.push_str(&String::from_utf8_lossy(bytes)),
        };
        session.attend(&mut outputs)
    }

    /// What it has printed so far, and where in the kernel it and its guests' vCPUs are.
    fn stands_still(&self, how: &str, lab: &Lab) -> LabError {
        let answer =
            lab.session(1).and_then(|mut session| session.check(&["sh", "-c", WHERE], ASKED));
        let threads = answer.unwrap_or_else(|error| error.to_string());
        LabError::Command {
            command: format!("hyperscope record ({how})"),
            output: format!("{}\n{threads}", last_lines(&self.output, 8)),
        }
    }

    fn failed(&self, ended: Ended) -> LabError {
        LabError::Command {
            command: format!("hyperscope record ({ended:?})"),
            output: last_lines(&self.output, 8),
        }
    }
}

fn put(session: &mut Session, from: &Path, to: &str) -> Result<()> {
    let mut file = File::open(from).map_err(LabError::io("cannot read", from))?;
    session.put(&Put { path: to.into(), mode: 0o755 }, &mut file)
}

/// The agent in the guest, on a channel that needs nothing.
fn start_agent(lab: &Lab) -> Result<()> {
    let arch = lab.description()?.arch;
    let none = || LabError::missing("hyperscope-agent", "build it with `make agent`");
    let program = machine_programs::agent(arch).ok_or_else(none)?;
    let mut session = lab.session(2)?;
    session.check(&["sh", "-c", END_AGENT], PATIENCE)?;
    put(&mut session, &program, AGENT)?;
    let channel = if memory(lab)?.is_some() { "shm" } else { "vsock" };
    let mut exec = command(&[AGENT, channel], PATIENCE);
    exec.detach_to = Some("/tmp/agent.log".into());
    session.output(&exec)?;
    session.check(&["timeout", "30", "sh", "-c", WAITING], PATIENCE).map(drop)
}

/// The file that a guest's shared memory is, where it has some.
fn memory(lab: &Lab) -> Result<Option<String>> {
    let guest = start::guest(&lab.description()?, 2);
    Ok(guest.shared_memory.map(|memory| memory.path))
}

fn words(record: &Record, memory: Option<&str>) -> Vec<String> {
    let mut words: Vec<String> = [PROGRAM, "record", "-o", FOLDER].map(str::to_owned).into();
    words.extend(["--buffer".to_owned(), record.buffer_kib.to_string()]);
    words.extend(record.events.iter().flat_map(|event| ["-e".to_owned(), event.clone()]));
    words.extend(record.probes.iter().flat_map(|probe| ["--kprobe".to_owned(), probe.clone()]));
    words.extend(record.hypercalls.then(|| "--hypercalls".to_owned()));
    words.extend(
        record.sample_hz.into_iter().flat_map(|hz| ["--sample".to_owned(), hz.to_string()]),
    );
    if record.has_guest() {
        let vsock = || format!("l2=vsock:{}", machine::vsock_cid(2));
        words
            .extend(["--guest".into(), memory.map_or_else(vsock, |path| format!("l2=shm:{path}"))]);
        let sample = record.guest_sample_hz.map(|hz| ["--guest-sample".into(), hz.to_string()]);
        words.extend(sample.into_iter().flatten());
        let flush = record.guest_flush_ms.map(|ms| ["--guest-flush".into(), format!("{ms}ms")]);
        words.extend(flush.into_iter().flatten());
        words.extend(record.guest_boot.then(|| "--guest-boot".into()));
        words.extend(["--guest-buffer".into(), record.buffer_kib.to_string()]);
        words.extend(["--guest-wait", GUEST_WAIT].map(str::to_owned));
        let named = |event: &String| ["--guest-event".to_owned(), event.clone()];
        words.extend(record.guest_events.iter().flat_map(named));
        let probed = |set: &String| ["--guest-kprobe".to_owned(), set.clone()];
        words.extend(record.guest_probes.iter().flat_map(probed));
    }
    if record.guest_module {
        words.extend(["--hypertrace".into(), format!("l2=shm:{}", start::memory_path(2))]);
    }
    words
}
