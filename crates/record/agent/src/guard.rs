//! A process that outlives the agent: after the agent is killed, it removes the agent's tracefs instances, and informs
//! the host if the channel does not.
//!
//! It runs this program with `--guard PID`, at the other end of a pipe. The pipe closes when the agent ends in any way;
//! until then the guard sleeps.

mod last_word;

use std::io::{ErrorKind, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Command, Stdio};

use channel::AgentAddress;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use tracefs::Tracefs;

use crate::error::Result;

/// The agent's program, even if its file was removed.
const PROGRAM: &str = "/proc/self/exe";

/// The agent's end of the pipe. Without a guard, the next agent cleans up.
#[derive(Debug)]
pub struct Guard(Option<ChildStdin>);

impl Guard {
    /// Starts the guard of this process; `channel`: where the process serves hosts, if it does.
    #[must_use]
    pub fn start(channel: Option<&AgentAddress>) -> Self {
        let child = Command::new(PROGRAM)
            .args(["--guard", &std::process::id().to_string()])
            .args(channel.map(ToString::to_string))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Keeps a terminal's signals away from the guard.
            .process_group(0)
            .spawn();
        if let Err(error) = &child {
            let what = "hyperscope-agent: cannot start the guard process; if the agent is killed, tracing stays on";
            printable::print_message(format_args!("{what}: {error}"));
        }
        Self(child.ok().and_then(|mut child| child.stdin.take()))
    }

    /// Notes the running session; 0: none.
    pub(crate) fn note(&mut self, session: u64) {
        // The guard may have been killed.
        let _ = self.0.as_mut().map(|pipe| pipe.write_all(&session.to_ne_bytes()));
    }
}

/// Waits until the agent ends, and cleans up after it.
///
/// # Errors
/// When tracefs can't be used any more.
pub fn guard(pid: u32, channel: Option<&AgentAddress>) -> Result<()> {
    // A service manager signals all processes of a service, but the agent may still need its guard.
    let _ignored = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    let session = last_session(std::io::stdin().lock());
    let removed = remove(pid);
    if let (Some(channel), Some(session)) = (channel, session) {
        last_word::send(channel, session);
    }
    removed
}

/// The session that was running when the pipe closed, if any.
fn last_session(mut pipe: impl Read) -> Option<u64> {
    let (mut session, mut bytes) = (0, [0; 8]);
    loop {
        match pipe.read_exact(&mut bytes) {
            Ok(()) => session = u64::from_ne_bytes(bytes),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return Some(session).filter(|session| *session != 0),
        }
    }
}

fn remove(pid: u32) -> Result<()> {
    // The agent's last thread may still be ending, with files of the instance open.
    Tracefs::find()?.await_removal_of(pid);
    Ok(())
}
