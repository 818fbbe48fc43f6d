//! The end of an interval: set in advance, then waited for.

use std::thread;
use std::time::Duration;

use rustix::thread::{MembarrierCommand, membarrier};
use sys::{ClockId, clock_ns};

use super::Programs;
use crate::error::Result;

/// Lead time for setting the end of an interval, so that all CPUs know it in time.
const AHEAD: Duration = Duration::from_millis(1);
/// The lead time doubles if it is too short, up to this.
const MAX_AHEAD: Duration = Duration::from_secs(1);
/// Time to wait for running programs if the kernel has no way to wait for them.
const LONGEST_RUN: Duration = Duration::from_millis(20);

impl Programs {
    /// Ends the current interval: sets a time from which everything goes to `next_bank`, waits for it, and returns it.
    /// Then the other bank can be read.
    pub(crate) fn end_interval(&mut self, next_bank: usize) -> Result<u64> {
        let end_ns = self.set_end(next_bank)?;
        while clock_ns(ClockId::Monotonic) <= end_ns {
            thread::sleep(AHEAD);
        }
        wait_for_programs();
        Ok(end_ns)
    }

    /// Sets the begin of the next interval and its bank in advance.
    fn set_end(&mut self, bank: usize) -> Result<u64> {
        let mut ahead = AHEAD;
        loop {
            // The last bit is the bank.
            let end_ns = (clock_ns(ClockId::Monotonic) + ahead.as_nanos() as u64) & !1;
            self.begin_interval(end_ns, bank)?;
            // This thread may have been preempted beyond that time.
            if clock_ns(ClockId::Monotonic) < end_ns || ahead > MAX_AHEAD {
                return Ok(end_ns);
            }
            ahead *= 2;
        }
    }
}

/// Waits until no program runs that began before: programs run with preemption disabled, and this waits until each CPU
/// has scheduled.
fn wait_for_programs() {
    if membarrier(MembarrierCommand::Global).is_err() {
        thread::sleep(LONGEST_RUN);
    }
}
