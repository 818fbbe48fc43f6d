//! Ends the program at a signal: at once, or after the recorded pages were sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use os::waits::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::error::Result;

/// Whether a host is being served: cleanup may be needed before the end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Busy(Arc<AtomicBool>);

impl Busy {
    pub(crate) fn set(&self, is_busy: bool) {
        self.0.store(is_busy, Ordering::Relaxed);
    }
}

/// Max time for a recording to end after the signal.
const LEAVING: Duration = Duration::from_secs(10);

/// Ends the program at a signal: at once, unless a host is served.
pub(crate) fn leave_at_signals(busy: &Busy, leave: &Signal) -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let (busy, leave) = (busy.clone(), leave.clone());
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        if signals.forever().next().is_some() && busy.0.load(Ordering::Relaxed) {
            leave.set();
            std::thread::sleep(LEAVING);
        }
        std::process::exit(0);
    })?;
    Ok(())
}
