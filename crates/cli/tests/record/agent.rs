//! Starts agents on this machine, as if it were its own guest.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// An agent; killed when dropped.
pub(crate) struct Agent(pub(crate) Child);

impl Agent {
    /// An agent that waits on a channel.
    pub(crate) fn start(channel: &str) -> Self {
        Self::start_with(&[channel])
    }

    /// An agent with these arguments.
    pub(crate) fn start_with(arguments: &[&str]) -> Self {
        Self::spawn(Command::new(program()).args(arguments))
    }

    /// Starts a command that becomes an agent.
    pub(crate) fn spawn(command: &mut Command) -> Self {
        crate::tool::mark(command);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        assert!(line.contains("waiting on"), "{line}");
        // Reads its messages, so that it never blocks on them.
        std::thread::spawn(move || stderr.lines().map_while(Result::ok).for_each(drop));
        Self(child)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(self.pid(), name);
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn signal(pid: u32, name: &str) {
    let killed = Command::new("kill").args([format!("-{name}"), pid.to_string()]).status();
    assert!(killed.unwrap().success());
}

/// The agent's program.
pub(crate) fn program() -> PathBuf {
    testkit::program_of("hyperscope-agent", env!("CARGO_BIN_EXE_hyperscope"))
}
