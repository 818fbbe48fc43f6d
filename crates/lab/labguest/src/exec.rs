//! Runs commands: sends output to the client as it arrives, and receives input and signals.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use labguest::wire::{Ended, Exec, FrameError, MAX_PAYLOAD_BYTES, Message};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use crate::failure::Failure;
use crate::ports::{Port, PortState};

/// Runs one command to its end, or until another request interrupts it.
pub(crate) fn run(port: &Port, exec: &Exec) -> Result<Option<Message>, Failure> {
    if let Some(log) = &exec.detach_to {
        let ended = detach(exec, log).map_err(|error| not_started(exec, &error))?;
        labguest::wire::write(&mut &*port, &Message::Ended(ended)).map_err(Failure::channel)?;
        return Ok(None);
    }
    let mut running = Running::start(exec).map_err(|error| not_started(exec, &error))?;
    let outcome = running.attend(port);
    // Background processes of a command that ended by itself keep running, as in any shell.
    if !matches!(outcome, Ok(Outcome::Ended(Ended::Exit(_) | Ended::Signal(_)))) {
        running.kill();
    }
    match outcome? {
        Outcome::Ended(ended) => {
            labguest::wire::write(&mut &*port, &Message::Ended(ended)).map_err(Failure::channel)?;
            Ok(None)
        }
        Outcome::Interrupted(message) => Ok(Some(message)),
    }
}

fn not_started(exec: &Exec, error: &io::Error) -> Failure {
    let program = exec.argv.first().map_or("", String::as_str);
    Failure::Request(format!("cannot run {program:?}: {error}"))
}

fn command(exec: &Exec) -> io::Result<Command> {
    let Some((program, arguments)) = exec.argv.split_first() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no program was given"));
    };
    let mut command = Command::new(program);
    // A separate process group, so that all its processes can be ended with it.
    command.args(arguments).envs(&exec.env).current_dir("/").process_group(0);
    Ok(command)
}

fn detach(exec: &Exec, log: &str) -> io::Result<Ended> {
    let log = File::create(log)?;
    let mut command = command(exec)?;
    let child = command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()?;
    // After this process ends, only init sees the end; until then a thread reaps the child.
    let pid = child.id();
    std::thread::spawn(move || {
        let mut child = child;
        let _ = child.wait();
    });
    Ok(Ended::Detached(pid))
}

/// A running command.
struct Running {
    child: Child,
    end: OwnedFd,
    stdin: Option<ChildStdin>,
    /// Input that the command has not read yet.
    pending: Vec<u8>,
    /// No input follows the pending input.
    input_ended: bool,
    deadline: Option<Instant>,
}

/// How handling a command ended.
enum Outcome {
    Ended(Ended),
    Interrupted(Message),
}

/// What ended a wait.
#[derive(Debug, Clone, Copy)]
struct Events {
    port: PortState,
    stdout: bool,
    stderr: bool,
    stdin: bool,
    ended: bool,
}

impl Running {
    fn start(exec: &Exec) -> io::Result<Self> {
        let mut command = command(exec)?;
        command.stdin(if exec.stdin { Stdio::piped() } else { Stdio::null() });
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let end = pidfd_open(pid(&child)?, PidfdFlags::empty())?;
        let stdin = child.stdin.take();
        if let Some(stdin) = &stdin {
            no_waiting(stdin)?;
        }
        for output in
            [child.stdout.as_ref().map(AsFd::as_fd), child.stderr.as_ref().map(AsFd::as_fd)]
        {
            output.map_or(Ok(()), no_waiting)?;
        }
        let deadline = exec.timeout_ms.map(|ms| Instant::now() + Duration::from_millis(ms));
        Ok(Self { child, end, stdin, pending: Vec::new(), input_ended: false, deadline })
    }

    /// Kills the command and all its processes.
    fn kill(&mut self) {
        if let Ok(pid) = pid(&self.child) {
            // Fails if all have ended already.
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let _ = self.child.wait();
    }

    fn attend(&mut self, port: &Port) -> Result<Outcome, Failure> {
        loop {
            let events = self.wait(port).map_err(Failure::channel)?;
            if events.stdout && !send(&mut self.child.stdout, port, Message::Stdout)? {
                self.child.stdout = None;
            }
            if events.stderr && !send(&mut self.child.stderr, port, Message::Stderr)? {
                self.child.stderr = None;
            }
            if events.stdin {
                self.feed();
            }
            if events.port == PortState::Left && port.is_left() {
                return Err(Failure::Channel(FrameError::Closed));
            }
            if events.port == PortState::Readable {
                match labguest::wire::read(&mut &*port)? {
                    Message::Data(bytes) => self.pending = bytes,
                    Message::End => self.input_ended = true,
                    Message::Signal(number) => self.signal(number),
                    other => return Ok(Outcome::Interrupted(other)),
                }
                self.feed();
            }
            if events.ended {
                return self.conclude(port);
            }
            if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(Outcome::Ended(Ended::TimedOut));
            }
        }
    }

    /// Waits for the next event. The port is polled for input only when no input is pending.
    fn wait(&self, port: &Port) -> io::Result<Events> {
        let input = if self.pending.is_empty() { PollFlags::IN } else { PollFlags::empty() };
        let mut fds = vec![PollFd::new(port, input), PollFd::new(&self.end, PollFlags::IN)];
        let mut places = [None; 3];
        if let Some(stdout) = &self.child.stdout {
            places[0] = Some(fds.len());
            fds.push(PollFd::new(stdout, PollFlags::IN));
        }
        if let Some(stderr) = &self.child.stderr {
            places[1] = Some(fds.len());
            fds.push(PollFd::new(stderr, PollFlags::IN));
        }
        if let Some(stdin) = self.stdin.as_ref().filter(|_| !self.pending.is_empty()) {
            places[2] = Some(fds.len());
            fds.push(PollFd::new(stdin, PollFlags::OUT));
        }
        let remaining =
            self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let remaining = remaining.and_then(|remaining| Timespec::try_from(remaining).ok());
        match poll(&mut fds, remaining.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let happened = |at: usize| fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
        let [stdout, stderr, stdin] = places.map(|place| place.is_some_and(happened));
        let port = PortState::from_flags(fds.first().map_or(PollFlags::empty(), PollFd::revents));
        Ok(Events { port, stdout, stderr, stdin, ended: happened(1) })
    }

    /// Writes as much input to the command as it accepts now.
    fn feed(&mut self) {
        if let Some(stdin) = &mut self.stdin {
            match stdin.write(&self.pending) {
                Ok(written) => drop(self.pending.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The command has closed its input: nobody reads the rest.
                Err(_) => self.pending.clear(),
            }
        } else {
            self.pending.clear();
        }
        if self.input_ended && self.pending.is_empty() {
            self.stdin = None;
        }
    }

    fn signal(&self, number: i32) {
        if let (Ok(pid), Some(signal)) = (pid(&self.child), Signal::from_named_raw(number)) {
            // Fails if it has just ended.
            let _ = kill_process_group(pid, signal);
        }
    }

    /// Sends the rest of the output, and reaps the command.
    fn conclude(&mut self, port: &Port) -> Result<Outcome, Failure> {
        while send(&mut self.child.stdout, port, Message::Stdout)? {}
        while send(&mut self.child.stderr, port, Message::Stderr)? {}
        let status = self.child.wait().map_err(Failure::channel)?;
        Ok(Outcome::Ended(ended(status)))
    }
}

fn pid(child: &Child) -> io::Result<Pid> {
    let raw = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    raw.ok_or_else(|| io::Error::other("a process without a number"))
}

fn no_waiting(fd: impl AsFd) -> io::Result<()> {
    let flags = fcntl_getfl(&fd)?;
    fcntl_setfl(&fd, flags | OFlags::NONBLOCK)?;
    Ok(())
}

/// Sends the output of one read; false at its end, and if there is none now.
fn send(
    output: &mut Option<impl Read>,
    port: &Port,
    wrap: fn(Vec<u8>) -> Message,
) -> Result<bool, Failure> {
    let Some(output) = output else { return Ok(false) };
    let mut buffer = vec![0; MAX_PAYLOAD_BYTES];
    let Ok(read) = output.read(&mut buffer) else { return Ok(false) };
    if read == 0 {
        return Ok(false);
    }
    buffer.truncate(read);
    labguest::wire::write(&mut &*port, &wrap(buffer)).map_err(Failure::channel)?;
    Ok(true)
}

fn ended(status: ExitStatus) -> Ended {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ended::Exit(code),
        (None, signal) => Ended::Signal(signal.unwrap_or(0)),
    }
}
