//! Handles Ctrl-C while a lab comes up: its machines end with the command.

use std::io::{self, Write};
use std::thread::{self, JoinHandle};

use lab::Lab;
use printable::messages;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

/// While it exists, an interruption ends the lab and then this program.
pub(crate) struct Guard {
    signals: Handle,
    thread: Option<JoinHandle<()>>,
}

/// Ends the lab and this program on a signal.
///
/// # Errors
/// When the system refuses a handler.
pub(crate) fn end_when_interrupted(lab: &Lab) -> io::Result<Guard> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let handle = signals.handle();
    let lab = lab.clone();
    let thread = thread::spawn(move || {
        let Some(signal) = signals.forever().next() else { return };
        if let Err(error) = lab.abandon() {
            let _ = writeln!(messages(), "hyperscope: {error}");
        }
        std::process::exit(128 + signal);
    });
    Ok(Guard { signals: handle, thread: Some(thread) })
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.signals.close();
        // After a signal this never returns: the failure is a consequence of the signal.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
