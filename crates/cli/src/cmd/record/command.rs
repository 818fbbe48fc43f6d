//! The command that a recording lasts as long as.

use std::io;
use std::process::Command;
use std::sync::mpsc::{self, Sender};
use std::thread;

use anyhow::{Context, anyhow};
use confine::Confined;
use recorder::Stop;

/// A thread that runs the command with all rights that this program was started with: it is there
/// before the recorder gives up its own.
pub(super) struct Runner {
    program: String,
    go: Sender<Go>,
}

/// What to end when the command has ended, and whether it could be started.
type Go = (Stop, Sender<io::Result<()>>);

impl Runner {
    /// Gets ready to run a command; none where there is none.
    pub(super) fn new(command: &[String]) -> anyhow::Result<Option<Self>> {
        let Some((program, arguments)) = command.split_first() else { return Ok(None) };
        let mut command = Command::new(program);
        command.args(arguments);
        let (go, goes) = mpsc::channel();
        thread::Builder::new()
            .name("command".into())
            .spawn(move || {
                // Without a recording it is not run.
                if let Ok(go) = goes.recv() {
                    run(command, go);
                }
            })
            .with_context(|| format!("cannot start a thread for {program}"))?;
        Ok(Some(Self { program: program.clone(), go }))
    }

    /// Runs it; its end ends the recording.
    pub(super) fn run(self, stop: &Stop) -> anyhow::Result<()> {
        let (reply, replied) = mpsc::channel();
        let sent = self.go.send((stop.clone(), reply));
        let gone = || anyhow!("its thread is gone");
        let started = sent.map_err(|_| gone()).and_then(|()| Ok(replied.recv()??));
        started.with_context(|| format!("cannot run {}", self.program))
    }
}

fn run(mut command: Command, (stop, reply): Go) {
    let started = command.spawn();
    Confined::WORKER.enter();
    match started {
        Ok(mut child) => {
            let _ = reply.send(Ok(()));
            let _ = child.wait();
            stop.end();
        }
        Err(error) => {
            let _ = reply.send(Err(error));
        }
    }
}
