//! Records a machine and its guest with trace-cmd.

use std::time::Duration;

use labguest::wire::Ended;

use crate::error::{LabError, Result};
use crate::lab::Lab;
use crate::machine;
use crate::scenario::Record;
use crate::session::{Outputs, Session, command};

/// The folder of recordings in the recorded machine.
const FOLDER: &str = "/tmp/record";
/// The recording of the machine itself.
const HOST: &str = "/tmp/record/host.dat";
/// The recording of its guest: trace-cmd appends the guest's name.
const GUEST: &str = "/tmp/record/host-l2.dat";
/// The port of trace-cmd's agent.
const AGENT_PORT: u32 = 823;
/// Max time for trace-cmd to begin, and to write the recording.
const PATIENCE: Duration = Duration::from_secs(120);
/// Max time for short commands.
const SHORT: Duration = Duration::from_secs(30);

/// A running recording.
pub(crate) struct TraceCmd {
    session: Session,
    /// trace-cmd's output so far, for an error.
    output: Vec<u8>,
    has_guest: bool,
}

impl TraceCmd {
    /// Starts recording level 1 of a lab.
    pub(crate) fn begin(lab: &Lab, record: &Record) -> Result<Self> {
        let has_guest = !record.guest_events.is_empty();
        if has_guest {
            start_agent(lab)?;
        }
        let mut session = lab.session(1)?;
        prepare(&mut session, record)?;
        let words = words(record);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut exec = command(&words, PATIENCE);
        exec.timeout_ms = None;
        session.start(&exec)?;
        let mut recording = Self { session, output: Vec::new(), has_guest };
        // Waits until the command that trace-cmd runs has started.
        let mut other = lab.session(1)?;
        let began = other.check(&["timeout", "60", "cat", &format!("{FOLDER}/began")], PATIENCE);
        if began.is_err() {
            recording
                .session
                .input()
                .signal(2)
                .map_err(|error| recording.failed(&error.to_string()))?;
            recording.session.limit();
            return Err(match recording.wait() {
                Err(error) => error,
                Ok(()) => recording.failed("it did not start"),
            });
        }
        Ok(recording)
    }

    /// Ends the recording, which completes the files; returns their names in the machine.
    pub(crate) fn end(mut self, lab: &Lab, record: &Record) -> Result<Vec<(String, &'static str)>> {
        let mut other = lab.session(1)?;
        other.check(&["sh", "-c", &format!("echo > {FOLDER}/end")], PATIENCE)?;
        self.session.limit();
        self.wait()?;
        remove_probes(&mut other, record)?;
        let guest = self.has_guest.then(|| (GUEST.to_owned(), "guest-l2.dat"));
        Ok([(HOST.to_owned(), "host.dat")].into_iter().chain(guest).collect())
    }

    fn wait(&mut self) -> Result<()> {
        let Self { session, output, .. } = self;
        let mut also = Vec::new();
        let mut outputs = Outputs {
            stdout: &mut |bytes| output.extend_from_slice(bytes),
            stderr: &mut |bytes| also.extend_from_slice(bytes),
        };
        let ended = session.follow(&mut outputs)?;
        self.output.extend(also);
        if ended == Ended::Exit(0) { Ok(()) } else { Err(self.failed(&format!("{ended:?}"))) }
    }

    fn failed(&self, what: &str) -> LabError {
        let output = String::from_utf8_lossy(&self.output);
        let output = crate::error::last_lines(&output, 8);
        LabError::Command { command: format!("trace-cmd record ({what})"), output }
    }
}

/// Starts the agent in the guest, through which trace-cmd records it.
fn start_agent(lab: &Lab) -> Result<()> {
    let mut exec = command(&["trace-cmd", "agent"], SHORT);
    exec.detach_to = Some("/tmp/agent.log".into());
    let mut session = lab.session(2)?;
    session.check(&["sh", "-c", "killall trace-cmd 2>/dev/null; true"], SHORT)?;
    let ended = session.output(&exec)?.ended;
    let Ended::Detached(pid) = ended else {
        let output = format!("it ended with {ended:?}");
        return Err(LabError::Command { command: "trace-cmd agent".into(), output });
    };
    session.check(&["sh", "-c", &until_it_accepts(pid)], SHORT).map(drop)
}

/// A shell command that ends when trace-cmd's agent is ready, and fails when the agent ends. The agent's output does
/// not show this: stdio buffers it when it goes to a file.
#[must_use]
pub fn until_it_accepts(pid: u32) -> String {
    format!(
        "until grep -q vsock_accept /proc/{pid}/wchan; do \
         kill -0 {pid} 2>/dev/null || {{ echo 'trace-cmd agent has ended' >&2; exit 1; }}; \
         sleep 0.05; done"
    )
}

fn prepare(session: &mut Session, record: &Record) -> Result<()> {
    let folder = format!("rm -rf {FOLDER}; mkdir -p {FOLDER}; mkfifo {FOLDER}/began {FOLDER}/end");
    session.check(&["sh", "-c", &folder], SHORT)?;
    for function in &record.probes {
        let line =
            format!("echo 'p:kprobes/{function} {function}' >> /sys/kernel/tracing/kprobe_events");
        session.check(&["sh", "-c", &line], SHORT)?;
    }
    Ok(())
}

fn remove_probes(session: &mut Session, record: &Record) -> Result<()> {
    record.probes.iter().try_for_each(|function| {
        let line = format!("echo '-:kprobes/{function}' >> /sys/kernel/tracing/kprobe_events");
        session.check(&["sh", "-c", &line], SHORT).map(drop)
    })
}

fn words(record: &Record) -> Vec<String> {
    let buffer = record.buffer_kib.to_string();
    let mut words: Vec<String> =
        ["trace-cmd", "record", "-b", &buffer, "-o", HOST].map(str::to_owned).into();
    let add = |words: &mut Vec<String>, events: &[String]| {
        words.extend(events.iter().flat_map(|event| ["-e".to_owned(), event.clone()]));
    };
    add(&mut words, &record.events);
    if !record.guest_events.is_empty() {
        let cid = machine::vsock_cid(2);
        words.extend(["-A".into(), format!("@{cid}:{AGENT_PORT}"), "--name".into(), "l2".into()]);
        words.extend(["-b".into(), buffer]);
        add(&mut words, &record.guest_events);
    }
    // It runs during the recording, and waits without waking up.
    let hold = format!("echo > {FOLDER}/began; cat {FOLDER}/end");
    words.extend(["sh".into(), "-c".into(), hold]);
    words
}
