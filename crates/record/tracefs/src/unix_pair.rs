//! Reads a trace clock and Unix time together: this puts recordings of several hosts on one time axis.

use sys::{ClockId, clock_ns};

use crate::clock::{Clock, TSC, TscConversion};
use crate::trace_clock::{READINGS, TraceClock};

/// One moment on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnixPair {
    /// Nanoseconds of the trace clock, as in recordings.
    pub trace_ns: u64,
    /// Nanoseconds since 1970, on the host's clock.
    pub unix_ns: u64,
    /// Max time between the two readings.
    pub error_ns: u64,
}

impl UnixPair {
    /// Reads both clocks; `None` if only the kernel can read this trace clock.
    #[must_use]
    pub fn now(clock: &Clock) -> Option<Self> {
        let trace = TraceClock::readable(&clock.name)?;
        let readings = (0..READINGS).map(|_| Self::reading(clock, &trace));
        readings.collect::<Option<Vec<_>>>()?.into_iter().min_by_key(|pair| pair.error_ns)
    }

    fn reading(clock: &Clock, trace: &TraceClock) -> Option<Self> {
        let before_ns = clock_ns(ClockId::Realtime);
        let trace_time = trace.now()?;
        let after_ns = clock_ns(ClockId::Realtime);
        let trace_ns = match clock.name.as_str() {
            TSC => converted(trace_time, clock.tsc_conversion?),
            _ => trace_time,
        };
        let half_ns = after_ns.saturating_sub(before_ns).div_ceil(2);
        Some(Self { trace_ns, unix_ns: before_ns.saturating_add(half_ns), error_ns: half_ns })
    }
}

/// Ticks as readers of recordings convert them: from tick 0 on, as trace-cmd does. The kernel's own clock adds the time
/// at tick 0, which is seconds where the counter began before the kernel.
fn converted(ticks: u64, by: TscConversion) -> u64 {
    (u128::from(ticks) * u128::from(by.mult)).checked_shr(by.shift).unwrap_or(0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(name: &str) -> Clock {
        Clock { name: name.into(), line: String::new(), tsc_conversion: None }
    }

    #[test]
    fn both_clocks_go_on_together() {
        let [first, other] = [0, 20].map(|ms| {
            std::thread::sleep(std::time::Duration::from_millis(ms));
            UnixPair::now(&clock("mono")).unwrap()
        });
        let (trace_ns, unix_ns) = (other.trace_ns - first.trace_ns, other.unix_ns - first.unix_ns);
        // Clocks that are set or slewed meanwhile differ by no more than this.
        let apart_ns = trace_ns.abs_diff(unix_ns);
        assert!(trace_ns >= 20_000_000 && apart_ns < 10_000_000 + first.error_ns + other.error_ns);
    }

    #[test]
    fn ticks_become_nanoseconds_and_clocks_of_the_kernel_alone_have_no_pair() {
        let half = TscConversion { mult: 1 << 31, shift: 32, zero_ns: 7 };
        assert_eq!(converted(2_000, half), 1_000);
        let counted_before = TscConversion { zero_ns: 300_u64.wrapping_neg(), ..half };
        assert_eq!(converted(2_000, counted_before), 1_000);
        assert_eq!(UnixPair::now(&clock("local")), None);
    }
}
