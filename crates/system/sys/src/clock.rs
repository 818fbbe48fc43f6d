//! The kernel's clocks in nanoseconds.

pub use rustix::time::ClockId;
use rustix::time::clock_gettime;

/// The current time of a clock, in nanoseconds.
#[must_use]
pub fn clock_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let seconds_ns = u64::try_from(time.tv_sec).unwrap_or(0).saturating_mul(1_000_000_000);
    seconds_ns.saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}

/// CPU time of all threads of this process in nanoseconds, which a recorder reports as its cost.
#[must_use]
pub fn process_cpu_ns() -> u64 {
    clock_ns(ClockId::ProcessCPUTime)
}
