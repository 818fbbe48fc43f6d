//! A recording of each run, by a recorder of its own, and what it says of the exits of that run.

use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use analyses::cpu::cpu;
use analyses::exits::{Exits, exits};
use analyses::group::By;
use analyses::states::VcpuState;
use experiment::{Count, RunOf, Watch};
use sources::Recording;

use super::exits::reason_name;
use crate::inputs::open_all;

/// How long a recorder may take to begin, and to write all when it ends.
const PATIENCE: Duration = Duration::from_secs(60);

/// Records runs into a folder.
#[derive(Debug)]
pub(super) struct Recordings {
    folder: PathBuf,
    vm: Option<String>,
    running: Option<Recorder>,
}

impl Recordings {
    /// Into a folder that is made.
    pub(super) fn begin(folder: &Path, vm: Option<&str>) -> io::Result<Self> {
        std::fs::create_dir(folder).map_err(|error| {
            let text = format!("--record: cannot make the folder {}: {error}", folder.display());
            io::Error::new(error.kind(), text)
        })?;
        Ok(Self { folder: folder.to_owned(), vm: vm.map(str::to_owned), running: None })
    }
}

impl Watch for Recordings {
    fn begin(&mut self, run: RunOf) -> io::Result<()> {
        // What warms up doesn't count.
        if run.block > 0 {
            let session =
                self.folder.join(format!("block-{:02}-{}.hscope", run.block, run.side.name()));
            self.running = Some(Recorder::start(session, self.vm.as_deref())?);
        }
        Ok(())
    }

    fn end(&mut self) -> io::Result<Vec<Count>> {
        let Some(recorder) = self.running.take() else { return Ok(Vec::new()) };
        let session = recorder.session.clone();
        recorder.end()?;
        counts(&session, self.vm.as_deref()).map_err(io::Error::other)
    }
}

/// `hyperscope record` at work; ended when dropped.
#[derive(Debug)]
struct Recorder {
    session: PathBuf,
    child: Child,
    said: Receiver<String>,
}

impl Recorder {
    /// Starts it, and waits until it records.
    fn start(session: PathBuf, vm: Option<&str>) -> io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("record").arg("-o").arg(&session);
        if let Some(vm) = vm {
            command.args(["--vm", vm]);
        }
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let (said, lines) = channel();
        if let Some(stderr) = child.stderr.take() {
            thread::Builder::new()
                .name("recorder's words".into())
                .spawn(move || pass_on(stderr, &said))?;
        }
        let recorder = Self { session, child, said: lines };
        recorder.wait_for("hyperscope: recording")?;
        Ok(recorder)
    }

    /// Waits for a line that begins so.
    fn wait_for(&self, begin: &str) -> io::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        let mut all = String::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.said.recv_timeout(left) {
                Ok(line) if line.starts_with(begin) => return Ok(()),
                Ok(line) => all = line,
                Err(RecvTimeoutError::Timeout) => {
                    return Err(self.failed("it did not begin within a minute"));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.failed(&all)),
            }
        }
    }

    fn failed(&self, why: &str) -> io::Error {
        io::Error::other(format!("no recording {}: {why}", self.session.display()))
    }

    /// Ends it, when all is in the folder.
    fn end(mut self) -> io::Result<()> {
        self.interrupt();
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.child.try_wait()? {
                Some(status) if status.success() => return Ok(()),
                Some(_) => {
                    let last = self.said.try_iter().last().unwrap_or_default();
                    return Err(self.failed(&last));
                }
                None if Instant::now() > deadline => {
                    return Err(self.failed("it did not end within a minute"));
                }
                None => thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    fn interrupt(&self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid {
            // It may have ended by itself.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.interrupt();
            let _ = self.child.wait();
        }
    }
}

/// Lines as they come.
fn pass_on(stderr: ChildStderr, to: &std::sync::mpsc::Sender<String>) {
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        let _ = to.send(line);
    }
}

/// The metrics of `--exits`, out of a recording.
fn counts(session: &Path, vm: Option<&str>) -> anyhow::Result<Vec<Count>> {
    let recordings = open_all(&[session.to_owned()])?;
    let always =
        |name: &str, value: u64| Count { name: name.into(), kind: None, value: value as f64 };
    let used = cpu(&recordings, &[], &[], &|_| ());
    let times = || used.vms.iter().filter(|one| vm.is_none_or(|vm| one.name == vm));
    let guest_ns = times().map(|vm| vm.times.guest()).sum();
    let waits = [VcpuState::Waiting, VcpuState::Preempted];
    let run_queue_ns = times().map(|vm| vm.times.of_all(&waits)).sum();
    let all: Vec<Exits> = recordings.iter().map(by_reason).collect();
    let rows = || {
        let rows = all.iter().flat_map(|exits| &exits.rows);
        rows.filter(|row| vm.is_none_or(|vm| row.group.vm.as_deref() == Some(vm)))
    };
    let cost = |row: &analyses::exits::ExitRow| if row.waiting { 0 } else { row.tally.costs.sum() };
    let mut counts = vec![
        always("exits", rows().map(|row| row.tally.count).sum()),
        always("exit_cost_ns", rows().map(cost).sum()),
        always("guest_ns", guest_ns),
        always("run_queue_ns", run_queue_ns),
    ];
    for row in rows() {
        let level = row.group.level.unwrap_or(1);
        let of = reason_name(level, row.group.reason.as_deref().unwrap_or_default());
        let count = |name, kind, value: u64| Count { name, kind: Some(kind), value: value as f64 };
        counts.push(count(format!("exits_{of}"), "exits", row.tally.count));
        if !row.waiting {
            counts.push(count(format!("exit_cost_{of}_ns"), "cost", cost(row)));
        }
    }
    Ok(counts)
}

fn by_reason(recording: &Recording) -> Exits {
    exits(recording, &[By::Vm, By::Level, By::Reason], &|_| ())
}
