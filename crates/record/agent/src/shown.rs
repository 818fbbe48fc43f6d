//! `hyperscope-agent steal`: shows what the host publishes about this guest's vCPUs.

use std::time::Duration;

use os::waits::Signal;
use steal_viewer::{Options, watch};

use crate::error::Result;
use crate::leave::{Busy, leave_at_signals};

/// Prints to standard output until the time is over or a signal ends it.
///
/// # Errors
/// When the host publishes nothing, or the output can't be written.
pub fn show_steal(options: &Options) -> Result<()> {
    let (busy, leave) = (Busy::default(), Signal::new()?);
    busy.set(true);
    leave_at_signals(&busy, &leave)?;
    let mut wait = |timeout: Duration| leave.wait(timeout);
    Ok(watch(options, &mut std::io::stdout().lock(), &mut wait)?)
}
