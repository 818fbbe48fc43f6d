//! The end of an interval: set before it comes, and waited for.

use std::thread;
use std::time::Duration;

use rustix::thread::{MembarrierCommand, membarrier};
use sys::{ClockId, clock_ns};

use super::Programs;
use crate::error::Result;

/// The end of an interval is set so long before it comes: all CPUs know it by then.
const AHEAD: Duration = Duration::from_millis(1);
/// Where that is too short it is doubled, up to this.
const MAX_AHEAD: Duration = Duration::from_secs(1);
/// Programs that run are waited for so long where the kernel has no way to wait for them.
const LONGEST_RUN: Duration = Duration::from_millis(20);

impl Programs {
    /// Ends the interval that goes on: from a moment to come, which this waits for, all goes to this bank, and what the
    /// other one has can be taken out.
    pub(crate) fn end_interval(&mut self, next_bank: usize) -> Result<u64> {
        let end_ns = self.set_end(next_bank)?;
        while clock_ns(ClockId::Monotonic) <= end_ns {
            thread::sleep(AHEAD);
        }
        wait_for_programs();
        Ok(end_ns)
    }

    /// Lets the programs know when the next interval begins, and its bank, before that comes.
    fn set_end(&mut self, bank: usize) -> Result<u64> {
        let mut ahead = AHEAD;
        loop {
            // The last bit is the bank's.
            let end_ns = (clock_ns(ClockId::Monotonic) + ahead.as_nanos() as u64) & !1;
            self.begin_interval(end_ns, bank)?;
            // This thread may have been without a CPU until after that moment.
            if clock_ns(ClockId::Monotonic) < end_ns || ahead > MAX_AHEAD {
                return Ok(end_ns);
            }
            ahead *= 2;
        }
    }
}

/// Waits until no program runs that was begun before: they run where the kernel can't be preempted, and
/// this waits until each CPU was somewhere else.
fn wait_for_programs() {
    if membarrier(MembarrierCommand::Global).is_err() {
        thread::sleep(LONGEST_RUN);
    }
}
