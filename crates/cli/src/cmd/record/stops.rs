//! Signals that end a recording: the first one regularly, the second one immediately.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::Context;
use os::confine::Confined;
use recorder::Stop;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use command::notice::say;

/// The phase of a recording, for the signal handler.
#[derive(Clone, Debug, Default)]
pub(super) struct Phase {
    complete: Arc<AtomicBool>,
}

impl Phase {
    /// Marks the session as complete: later steps only add to it, and can be skipped.
    pub(super) fn is_complete(&self) {
        self.complete.store(true, Ordering::Relaxed);
    }
}

/// Ends the recording at signals: see [`Stop::interrupt`]. If that does not end it, for example
/// because a disk no longer responds, another signal ends the process, and its guard cleans up.
pub(super) fn heed_signals(stop: &Stop, to: &Path) -> anyhow::Result<Phase> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot handle signals")?;
    let phase = Phase::default();
    let (stop, seen, to) = (stop.clone(), phase.clone(), to.to_owned());
    thread::spawn(move || {
        Confined::WORKER.enter();
        for _ in signals.forever() {
            let count = stop.interrupt();
            if seen.complete.load(Ordering::Relaxed) {
                say(&format!("stopped: {} is complete, except for the final counts", to.display()));
                std::process::exit(1);
            }
            match count {
                1 => {}
                2 => say(&format!(
                    "stopping immediately: the data written so far is in {} and can be read",
                    to.display()
                )),
                _ => std::process::exit(1),
            }
        }
    });
    Ok(phase)
}
