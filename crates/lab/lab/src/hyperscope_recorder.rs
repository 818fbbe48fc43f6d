//! Records level 1 with `hyperscope record`, and its guest with `hyperscope-agent`; copies both programs there first.

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

/// Path of the program in level 1.
const PROGRAM: &str = "/bin/hyperscope";
/// Path of its session.
const FOLDER: &str = "/tmp/record.hscope";
/// Its message once it records.
const BEGUN: &str = "hyperscope: recording";
/// Its message once a guest that it waited for is recorded.
const TAKEN: &str = "is recorded";
/// Time that it waits for its guest after the end: an emulated guest in an emulated machine is slow.
const GUEST_WAIT: &str = "180s";
/// Its message about a guest that has ended.
const WENT_DOWN: &str = "its VM has ended";
/// The signal that ends it (SIGINT).
const INTERRUPT: i32 = 2;
/// Max time for it to begin, and to write the recording.
const PATIENCE: Duration = Duration::from_secs(120);

/// Path of the agent in the guest.
const AGENT: &str = "/bin/hyperscope-agent";
/// Ends a running agent; its file can't be written before that.
const END_AGENT: &str = "while killall hyperscope-agent 2>/dev/null; do sleep 0.05; done";
/// Waits for the agent's message that it is ready.
const WAITING: &str = "until grep -q 'waiting on' /tmp/agent.log; do sleep 0.1; done";

/// Prints the kernel stacks of recorders' and QEMU's threads, and their run times.
const WHERE: &str = "for task in $(pidof hyperscope qemu-system-x86_64 | tr ' ' '\\n' | \
    while read pid; do echo /proc/$pid/task/*; done); do
        echo \"$(cat $task/comm): $(sed 's/.*) //' $task/stat | cut -d' ' -f1,12,13) $(head -n 4 $task/stack | tr '\\n' ' ')\"
    done; cat /proc/loadavg";
/// Max time for level 1 to answer that.
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

/// Whether hyperscope runs in level 1: it was built for the lab's architecture, and level 1's C library is not older
/// than this system's. To record a guest, the agent must have been built, too.
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
    /// Starts recording level 1 of a lab in which hyperscope runs.
    pub(crate) fn begin(lab: &Lab, record: &Record) -> Result<Self> {
        let has_guest = record.has_guest();
        let has_module = record.guest_module;
        // The kernel of a booting guest records it until it has an agent.
        if has_guest && !record.guest_boot {
            start_agent(lab)?;
        }
        let mut session = lab.session(1)?;
        session.check(&["rm", "-rf", FOLDER], PATIENCE)?;
        let memory = memory(lab)?;
        let words = words(record, memory.as_deref());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut exec = command(&words, PATIENCE);
        // It ends on a signal.
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

    /// Also records the guest that booted meanwhile: its boot recording, and its further events.
    pub(crate) fn take_guest(&mut self, lab: &Lab) -> Result<()> {
        start_agent(lab)?;
        self.wait_for(TAKEN, lab)
    }

    /// Waits for a word in its output.
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
        // The recording of a guest that a scenario shuts down ends with the guest.
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

    /// The error of a hang: its output so far, and where it and the guests' vCPUs are in the kernel.
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

/// Starts the agent in the guest, on a channel that needs no setup.
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

/// The file of a guest's shared memory, if it has some.
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
