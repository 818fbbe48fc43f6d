//! What a snapshot of an emulated Arm machine lacks: the timers its kernel waits for.
//!
//! A kernel that hosts guests runs at EL2 and keeps time by that level's timer. QEMU saves the
//! registers of that timer, but doesn't start it when it loads them: whatever sleeps never wakes.

use std::thread;
use std::time::Duration;

use crate::arch::Arch;
use crate::description::Description;
use crate::error::Result;
use crate::lab::Lab;
use crate::machine::Accelerator;
use crate::session::Session;

/// The control port that no session used before the snapshot was made: its server sleeps for
/// nothing but a client.
const FRESH_PORT: usize = labguest::wire::PORTS - 1;

/// How long that may take.
const REARMING: Duration = Duration::from_secs(20);

/// A kernel that was too slow for its timers leaves them alone for up to 100 ms, and servers look
/// after clients that left for less than a second.
const SETTLING: Duration = Duration::from_secs(1);

impl Lab {
    /// Waits until the first machine, about to be saved, heeds its timers.
    pub(crate) fn let_timers_settle(&self, description: &Description) {
        if lacks_timers(description) {
            thread::sleep(SETTLING);
        }
    }

    /// Has the first machine, just loaded, set its timers again.
    pub(crate) fn rearm_timers(&self, description: &Description) -> Result<()> {
        if !lacks_timers(description) {
            return Ok(());
        }
        let mut session = Session::open(1, self.port(FRESH_PORT)?, REARMING)?;
        session.check(&["hyperscope-labguest", "rearm"], REARMING).map(drop)
    }
}

fn lacks_timers(description: &Description) -> bool {
    description.arch == Arch::Aarch64 && description.accelerator != Some(Accelerator::Kvm)
}
