//! Signals that end a recording or a measurement in order.

use std::sync::mpsc::Sender;
use std::thread;

use anyhow::Context;
use os::confine::Confined;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Reports signals that end a recording.
pub fn stop_at_signals(over: Sender<()>) -> anyhow::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot handle signals")?;
    thread::spawn(move || {
        Confined::WORKER.enter();
        for _ in signals.forever() {
            // After the end, a request has no receiver.
            let _ = over.send(());
        }
    });
    Ok(())
}
