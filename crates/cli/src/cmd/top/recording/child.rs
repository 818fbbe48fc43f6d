//! A program that runs while the screen goes on, with a deadline, and with what it says kept.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Of what a program has said, the end that its last line is looked for in.
const LAST_BYTES: usize = 4096;
/// How often it is looked whether a program has ended that was interrupted.
const LOOK: Duration = Duration::from_millis(10);

/// A program that was started. Dropped, it is ended in order, and waited for.
#[derive(Debug)]
pub(super) struct Running {
    child: Child,
    /// A file, so that a program which says much, or whose reader was killed, goes on.
    said: File,
    deadline: Instant,
    /// From the interrupt until it is killed.
    grace: Duration,
    /// When it was interrupted.
    interrupted: Option<Instant>,
    is_late: bool,
    status: Option<ExitStatus>,
}

impl Running {
    /// Starts a program, which has so long, and that grace once it is interrupted.
    pub(super) fn start<S: AsRef<OsStr>>(
        program: &Path,
        arguments: impl IntoIterator<Item = S>,
        at_most: Duration,
        grace: Duration,
    ) -> io::Result<Self> {
        let said = tempfile::tempfile()?;
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(said.try_clone()?)
            // What the terminal sends is for the screen: that ends the program in order.
            .process_group(0)
            .spawn()?;
        let deadline = Instant::now() + at_most;
        Ok(Self { child, said, deadline, grace, interrupted: None, is_late: false, status: None })
    }

    /// How it ended, if it has; at its deadline it is interrupted, and after its grace it is killed.
    pub(super) fn look(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.status.is_none() {
            self.status = self.child.try_wait()?;
        }
        if self.status.is_some() {
            return Ok(self.status);
        }
        if self.interrupted.is_none() && Instant::now() >= self.deadline {
            self.is_late = true;
            self.interrupt();
        }
        if self.interrupted.is_some_and(|at| at.elapsed() >= self.grace) {
            self.is_late = true;
            self.child.kill()?;
        }
        Ok(None)
    }

    /// Interrupts it, once.
    pub(super) fn interrupt(&mut self) {
        if self.status.is_none() && self.interrupted.is_none() {
            // It is not waited for yet: the number is its own. Where this fails, its grace ends it.
            let _ = kill_process(Pid::from_child(&self.child), Signal::INT);
            self.interrupted = Some(Instant::now());
        }
    }

    /// Interrupts it, and waits for that.
    pub(super) fn end(&mut self) -> io::Result<ExitStatus> {
        self.interrupt();
        loop {
            if let Some(status) = self.look()? {
                return Ok(status);
            }
            thread::sleep(LOOK);
        }
    }

    /// Its process id.
    #[cfg(test)]
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it was interrupted by whoever started it, or by its deadline.
    pub(super) fn is_ending(&self) -> bool {
        self.interrupted.is_some()
    }

    /// Whether it did not end by itself in its time.
    pub(super) fn is_late(&self) -> bool {
        self.is_late
    }

    /// Whether it has said anything.
    pub(super) fn has_spoken(&self) -> bool {
        self.said.metadata().is_ok_and(|of| of.len() > 0)
    }

    /// The last line that it said.
    pub(super) fn last_line(&self) -> Option<String> {
        let length = self.said.metadata().ok()?.len();
        let mut bytes = vec![0; LAST_BYTES];
        let begin = length.saturating_sub(LAST_BYTES as u64);
        let read = self.said.read_at(&mut bytes, begin).ok()?;
        bytes.truncate(read);
        let text = String::from_utf8_lossy(&bytes);
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
