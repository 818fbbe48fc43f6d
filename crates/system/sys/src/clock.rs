//! CPU time of this process: what a recorder says that it cost.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of CPU time that all threads of this process have had.
#[must_use]
pub fn process_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let whole = u64::try_from(time.tv_sec).unwrap_or(0).saturating_mul(1_000_000_000);
    whole.saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}
