//! A child process with a deadline and captured output.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use os::waits::Deadline;
use rustix::process::{Pid, Signal, kill_process};

/// Bytes of output that are searched: the end for the last line, the beginning for a given line.
const LAST_BYTES: usize = 4096;
const FIRST_BYTES: usize = 64 << 10;
/// Interval between checks whether an interrupted program has ended.
const LOOK: Duration = Duration::from_millis(10);

/// A started program. Dropping it interrupts the program and waits for it.
#[derive(Debug)]
pub struct Running {
    child: Child,
    /// A file, so that the program continues even if it prints a lot or this process is killed.
    stderr: File,
    deadline: Deadline,
    /// Time from the interrupt until it is killed.
    grace: Duration,
    interrupted: Option<Instant>,
    is_late: bool,
    status: Option<ExitStatus>,
}

impl Running {
    /// Starts a program with a time limit, and with a grace period after an interrupt.
    pub fn start<S: AsRef<OsStr>>(
        program: &Path,
        arguments: impl IntoIterator<Item = S>,
        at_most: Duration,
        grace: Duration,
    ) -> io::Result<Self> {
        let stderr = tempfile::tempfile()?;
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr.try_clone()?)
            // Signals from the terminal reach only this program, which stops the child in order.
            .process_group(0)
            .spawn()?;
        let deadline = Deadline::after(at_most);
        Ok(Self { child, stderr, deadline, grace, interrupted: None, is_late: false, status: None })
    }

    /// The exit status if it ended. Interrupts it at its deadline, and kills it after the grace
    /// period.
    pub fn look(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.status.is_none() {
            self.status = self.child.try_wait()?;
        }
        if self.status.is_some() {
            return Ok(self.status);
        }
        if self.interrupted.is_none() && self.deadline.has_passed() {
            self.is_late = true;
            self.interrupt();
        }
        if self.interrupted.is_some_and(|at| at.elapsed() >= self.grace) {
            self.is_late = true;
            self.child.kill()?;
        }
        Ok(None)
    }

    /// Interrupts it, unless it was interrupted before.
    pub fn interrupt(&mut self) {
        if self.status.is_none() && self.interrupted.is_none() {
            // The child has not been waited for, so the id is still its own. If this fails, the
            // grace period ends the child.
            let _ = kill_process(Pid::from_child(&self.child), Signal::INT);
            self.interrupted = Some(Instant::now());
        }
    }

    /// Interrupts it, and waits until it ends.
    pub fn end(&mut self) -> io::Result<ExitStatus> {
        self.interrupt();
        loop {
            if let Some(status) = self.look()? {
                return Ok(status);
            }
            thread::sleep(LOOK);
        }
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it was interrupted, by its owner or by its deadline.
    pub fn is_ending(&self) -> bool {
        self.interrupted.is_some()
    }

    /// Whether it exceeded its time limit.
    pub fn is_late(&self) -> bool {
        self.is_late
    }

    /// Whether it printed anything.
    pub fn has_spoken(&self) -> bool {
        self.stderr.metadata().is_ok_and(|metadata| metadata.len() > 0)
    }

    /// Whether it printed a line that begins with `begin`.
    pub fn has_said(&self, begin: &str) -> bool {
        self.said_at(0, FIRST_BYTES)
            .is_some_and(|text| text.lines().any(|line| line.starts_with(begin)))
    }

    /// Its output from a position on, at most `max` bytes.
    fn said_at(&self, place: u64, max: usize) -> Option<String> {
        let mut bytes = vec![0; max];
        let read = self.stderr.read_at(&mut bytes, place).ok()?;
        bytes.truncate(read);
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The last line that it printed.
    pub fn last_line(&self) -> Option<String> {
        let length = self.stderr.metadata().ok()?.len();
        let text = self.said_at(length.saturating_sub(LAST_BYTES as u64), LAST_BYTES)?;
        let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
        Some(line.strip_prefix("hyperscope: ").unwrap_or(line).to_owned())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.status.is_none() && self.end().is_err() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
