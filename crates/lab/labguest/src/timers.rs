//! Sets the CPUs' timers again, after loading a snapshot that lacks them.

use std::io;

use rustix::thread::{
    ClockId, CpuSet, clock_nanosleep_absolute, sched_getaffinity, sched_setaffinity,
};
use rustix::time::Timespec;

/// A time that has passed on every machine.
const PAST: Timespec = Timespec { tv_sec: 0, tv_nsec: 1 };

/// Makes the kernel program each CPU's timer.
///
/// The kernel programs it only for an expiry that is earlier than all others, and otherwise assumes that it is set
/// already. So this sets an expired timer on each CPU.
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
