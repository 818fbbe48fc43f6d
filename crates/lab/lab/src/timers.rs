//! Restores the timers of an emulated arm64 machine after loading its snapshot.
//!
//! A kernel that hosts guests runs at EL2 and uses the timer of EL2. QEMU saves the registers of that timer, but does
//! not start it when it loads them: sleeping tasks never wake.

use std::thread;
use std::time::Duration;

use crate::arch::Arch;
use crate::description::Description;
use crate::error::Result;
use crate::lab::Lab;
use crate::machine::Accelerator;
use crate::session::Session;

/// A control port without a session before the snapshot: its server sleeps only until a client connects.
const FRESH_PORT: usize = labguest::wire::PORTS - 1;

/// Max time for that.
const REARMING: Duration = Duration::from_secs(20);

/// A kernel that was too slow for its timers defers them for up to 100 ms, and servers watch for clients that left for
/// less than a second.
const SETTLING: Duration = Duration::from_secs(1);

impl Lab {
    /// Waits until the timers of the first machine, about to be saved, are active.
    pub(crate) fn let_timers_settle(&self, description: &Description) {
        if lacks_timers(description) {
            thread::sleep(SETTLING);
        }
    }

    /// Makes the first machine, just loaded, set its timers again.
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
