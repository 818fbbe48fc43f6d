//! Runs one command in its own process group, with its times, a timeout, and a guaranteed end.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

/// Max bytes of a command's output that is read.
pub const MAX_OUTPUT: u64 = 16 << 20;

/// Interval of checking limits while a command runs.
const LOOK: Duration = Duration::from_millis(100);

/// Max bytes of a command's last output in messages.
const MAX_SAID: usize = 400;

/// Limits of a command.
#[derive(Clone, Copy, Debug)]
pub struct Limits<'s> {
    /// Max time of a command.
    pub timeout: Duration,
    /// Set by a signal: everything ends.
    pub stop: &'s AtomicBool,
}

/// Why a command has no result.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// It could not be started, or waited for.
    #[error("cannot run {0}: {1}")]
    NotStarted(String, io::Error),
    /// It failed; with the end of its output.
    #[error("{0} ended with {1}{2}")]
    Failed(String, ExitStatus, String),
    /// It exceeded its timeout, and was killed with its whole process group.
    #[error("{0} exceeded the timeout of {1:?} and was killed: raise --timeout")]
    TimedOut(String, Duration),
    /// It printed too much.
    #[error("{0} printed more than {MAX_OUTPUT} bytes and was killed")]
    TooLong(String),
    /// A signal interrupted it.
    #[error("interrupted")]
    Interrupted,
}

/// A command that ended by itself.
#[derive(Debug)]
pub(crate) struct Done {
    name: String,
    status: ExitStatus,
    errors: String,
    pub(crate) wall_ns: u64,
    /// CPU time of it and of the children that it waited for.
    pub(crate) user_ns: u64,
    pub(crate) sys_ns: u64,
    /// Its output.
    pub(crate) output: String,
}

impl Done {
    /// Why it failed, if so.
    pub(crate) fn failure(&self) -> Option<CommandError> {
        let output_end = || self.output_end();
        let failed = || CommandError::Failed(self.name.clone(), self.status, output_end());
        (!self.status.success()).then(failed)
    }

    /// The end of its output, for messages; empty if there is none.
    pub(crate) fn output_end(&self) -> String {
        let ends = [&self.output, &self.errors].map(|text| end(text));
        let ends: Vec<&str> = ends.into_iter().filter(|end| !end.is_empty()).collect();
        if ends.is_empty() { String::new() } else { format!(": {}", ends.join("\n")) }
    }
}

/// Runs `argv`; a single word is a shell command. Reads its output if `reads`. The caller checks whether it succeeded.
pub(crate) fn run(
    argv: &[String],
    variables: &[(&str, &str)],
    limits: Limits<'_>,
    reads: bool,
) -> Result<Done, CommandError> {
    let name = argv.join(" ");
    let not_started = |error| CommandError::NotStarted(name.clone(), error);
    let [output, errors] = [memory_file(), memory_file()];
    let (mut output, mut errors) = (output.map_err(not_started)?, errors.map_err(not_started)?);
    let mut command = command(argv);
    command.envs(variables.iter().copied());
    command.stdout(if reads {
        output.try_clone().map_err(not_started)?.into()
    } else {
        Stdio::null()
    });
    command.stderr(errors.try_clone().map_err(not_started)?);
    let before = getrusage(UsageWho::RUSAGE_CHILDREN).ok();
    let start = Instant::now();
    let mut group = Group::spawn(command).map_err(not_started)?;
    let ended = group.wait(start, limits, [&output, &errors]).map_err(not_started)?;
    let wall_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let status = match ended {
        Ended::Itself(status) => status,
        Ended::TimedOut => return Err(CommandError::TimedOut(name, limits.timeout)),
        Ended::TooLong => return Err(CommandError::TooLong(name)),
        Ended::Interrupted => return Err(CommandError::Interrupted),
    };
    let after = getrusage(UsageWho::RUSAGE_CHILDREN).ok();
    let spent = |time: fn(&Usage) -> i64| match (&before, &after) {
        (Some(before), Some(after)) => u64::try_from(time(after) - time(before)).unwrap_or(0),
        _ => 0,
    };
    let user_ns = spent(|usage| usage.user_time().num_nanoseconds());
    let sys_ns = spent(|usage| usage.system_time().num_nanoseconds());
    let output = text(&mut output).map_err(not_started)?;
    let errors = text(&mut errors).unwrap_or_default();
    Ok(Done { name, status, errors, wall_ns, user_ns, sys_ns, output })
}

fn command(argv: &[String]) -> Command {
    match argv {
        [line] => {
            let mut command = Command::new("/bin/sh");
            command.arg("-c").arg(line);
            command
        }
        [program, arguments @ ..] => {
            let mut command = Command::new(program);
            command.args(arguments);
            command
        }
        [] => Command::new("/bin/true"),
    }
}

fn memory_file() -> io::Result<File> {
    Ok(File::from(memfd_create("output", MemfdFlags::CLOEXEC)?))
}

fn text(file: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.take(MAX_OUTPUT).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The end of a text, for messages.
fn end(text: &str) -> &str {
    let text = text.trim_end();
    let mut from = text.len().saturating_sub(MAX_SAID);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    text.get(from..).unwrap_or_default()
}

enum Ended {
    Itself(ExitStatus),
    TimedOut,
    TooLong,
    Interrupted,
}

/// A command and its children, in a separate process group, with empty input.
#[derive(Debug)]
pub struct Group(Child);

impl Group {
    /// Starts `argv`, of which a single word is a shell command; its output goes to `output`.
    ///
    /// # Errors
    /// When it can't be started.
    pub fn start(argv: &[String], output: impl Into<Stdio>) -> io::Result<Self> {
        let mut command = command(argv);
        command.stdout(output);
        Self::spawn(command)
    }

    fn spawn(mut command: Command) -> io::Result<Self> {
        Ok(Self(command.process_group(0).stdin(Stdio::null()).spawn()?))
    }

    /// How the command ended, if it has.
    ///
    /// # Errors
    /// When the kernel does not report it.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.0.try_wait()
    }

    fn pid(&self) -> io::Result<Pid> {
        let raw = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
        raw.ok_or_else(|| io::Error::other("a process without a number"))
    }

    fn wait(&mut self, start: Instant, limits: Limits<'_>, files: [&File; 2]) -> io::Result<Ended> {
        let end = match self.pid().and_then(|pid| Ok(pidfd_open(pid, PidfdFlags::empty())?)) {
            Ok(end) => end,
            Err(error) => {
                self.kill();
                return Err(error);
            }
        };
        loop {
            let remaining = limits.timeout.saturating_sub(start.elapsed()).min(LOOK);
            let remaining = Timespec::try_from(remaining).ok();
            let mut fds = [PollFd::new(&end, PollFlags::IN)];
            match poll(&mut fds, remaining.as_ref()) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(Ended::Itself(self.0.wait()?)),
                Err(error) => {
                    self.kill();
                    return Err(error.into());
                }
            }
            let is_long =
                |file: &&File| file.metadata().is_ok_and(|metadata| metadata.len() > MAX_OUTPUT);
            let ended = match () {
                () if limits.stop.load(Ordering::Relaxed) => Ended::Interrupted,
                () if start.elapsed() >= limits.timeout => Ended::TimedOut,
                () if files.iter().any(is_long) => Ended::TooLong,
                () => continue,
            };
            self.kill();
            return Ok(ended);
        }
    }

    /// Kills the command, which has not been waited for, and all of its group.
    pub fn kill(&mut self) {
        if let Ok(pid) = self.pid() {
            // Fails if all have ended already.
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let _ = self.0.wait();
    }
}
