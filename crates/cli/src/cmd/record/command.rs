//! The command that determines the length of a recording.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, OnceLock};
use std::thread;

use anyhow::{Context, anyhow};
use os::confine::Confined;
use recorder::Stop;

/// A thread that runs the command with all privileges of this program at its start: it exists before the
/// recorder drops its own.
pub(super) struct Runner {
    program: String,
    go: Sender<Go>,
}

/// What to stop when the command ends, a channel for the result of its start, and its exit status.
type Go = (Stop, Sender<io::Result<()>>, Arc<OnceLock<ExitStatus>>);

/// A running command.
pub(super) struct RunningCommand(Arc<OnceLock<ExitStatus>>);

impl RunningCommand {
    /// Its exit code, or 128 plus the signal's number if a signal ended it, as in shells; `None` while it runs.
    pub(super) fn exit_code(&self) -> Option<u8> {
        code_of(*self.0.get()?)
    }
}

fn code_of(status: ExitStatus) -> Option<u8> {
    let signal = || status.signal().map(|signal| signal.saturating_add(128));
    u8::try_from(status.code().or_else(signal)?).ok()
}

impl Runner {
    /// Prepares to run a command; `None` without a command.
    pub(super) fn new(command: &[String]) -> anyhow::Result<Option<Self>> {
        let Some((program, arguments)) = command.split_first() else { return Ok(None) };
        let mut command = Command::new(program);
        command.args(arguments);
        let (go, goes) = mpsc::channel();
        thread::Builder::new()
            .name("command".into())
            .spawn(move || {
                // The command does not run without a recording.
                if let Ok(go) = goes.recv() {
                    run(command, go);
                }
            })
            .with_context(|| format!("cannot start a thread for {program}"))?;
        Ok(Some(Self { program: program.clone(), go }))
    }

    /// Runs it; its end stops the recording.
    pub(super) fn run(self, stop: &Stop) -> anyhow::Result<RunningCommand> {
        let (reply, replied) = mpsc::channel();
        let ended = Arc::new(OnceLock::new());
        let sent = self.go.send((stop.clone(), reply, ended.clone()));
        let gone = || anyhow!("its thread ended");
        let started = sent.map_err(|_| gone()).and_then(|()| Ok(replied.recv()??));
        started.with_context(|| format!("cannot run {}", self.program))?;
        Ok(RunningCommand(ended))
    }
}

fn run(mut command: Command, (stop, reply, ended): Go) {
    let started = command.spawn();
    Confined::WORKER.enter();
    match started {
        Ok(mut child) => {
            let _ = reply.send(Ok(()));
            if let Ok(status) = child.wait() {
                let _ = ended.set(status);
            }
            stop.end();
        }
        Err(error) => {
            let _ = reply.send(Err(error));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_shells() {
        let codes = [0, 7 << 8, 255 << 8, 15].map(|raw| code_of(ExitStatus::from_raw(raw)));
        assert_eq!(codes, [Some(0), Some(7), Some(255), Some(143)]);
    }
}
