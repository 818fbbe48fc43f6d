//! Sets the processors' timers again, after a snapshot that lacks them.

use std::io;

use rustix::thread::{
    ClockId, CpuSet, clock_nanosleep_absolute, sched_getaffinity, sched_setaffinity,
};
use rustix::time::Timespec;

/// A moment that has passed on every machine that can run this.
const PAST: Timespec = Timespec { tv_sec: 0, tv_nsec: 1 };

/// Makes the kernel write each processor's timer.
///
/// The kernel writes it only for something that is due before all else it waits for, and takes it
/// for set already otherwise. So on each processor, something is due that was due long ago.
pub(crate) fn rearm() -> io::Result<()> {
    let all = sched_getaffinity(None)?;
    for processor in (0..CpuSet::MAX_CPU).filter(|&processor| all.is_set(processor)) {
        let mut cpus = CpuSet::new();
        cpus.set(processor);
        sched_setaffinity(None, &cpus)?;
        clock_nanosleep_absolute(ClockId::Monotonic, &PAST)?;
    }
    Ok(())
}
