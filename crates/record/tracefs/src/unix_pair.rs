//! A trace clock and Unix time, read together: what puts recordings of several hosts on one time.

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use crate::clock::{Clock, TSC, TscConversion};

/// Readings of which the quickest counts: an interrupt in between makes one slow.
const READINGS: usize = 5;

/// The same moment by both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct UnixPair {
    /// Nanoseconds of the trace clock, as recordings have them.
    pub trace_ns: u64,
    /// Nanoseconds since 1970, by the host's own clock.
    pub unix_ns: u64,
    /// The two were read within so much of each other.
    pub error_ns: u64,
}

impl UnixPair {
    /// Both now; `None`: the kernel alone can read this trace clock.
    #[must_use]
    pub fn now(clock: &Clock) -> Option<Self> {
        let readings = (0..READINGS).map(|_| Self::reading(clock)).collect::<Option<Vec<_>>>()?;
        readings.into_iter().min_by_key(|one| one.error_ns)
    }

    fn reading(clock: &Clock) -> Option<Self> {
        let before_ns = ns(ClockId::Realtime);
        let trace_ns = trace_ns(clock)?;
        let after_ns = ns(ClockId::Realtime);
        let gap_ns = after_ns.saturating_sub(before_ns);
        let half_ns = gap_ns.div_ceil(2);
        Some(Self { trace_ns, unix_ns: before_ns.saturating_add(half_ns), error_ns: half_ns })
    }
}

fn trace_ns(clock: &Clock) -> Option<u64> {
    let id = match clock.name.as_str() {
        TSC => return sys::tsc().zip(clock.tsc_conversion).map(|(ticks, by)| converted(ticks, by)),
        "mono" => ClockId::Monotonic,
        "mono_raw" => ClockId::MonotonicRaw,
        "boot" => ClockId::Boottime,
        _ => return None,
    };
    Some(ns(id))
}

fn converted(ticks: u64, by: TscConversion) -> u64 {
    let scaled = (u128::from(ticks) * u128::from(by.mult)).checked_shr(by.shift).unwrap_or(0);
    by.zero_ns.saturating_add(u64::try_from(scaled).unwrap_or(u64::MAX))
}

fn ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let whole = u64::try_from(time.tv_sec).unwrap_or(0).saturating_mul(1_000_000_000);
    whole.saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(name: &str) -> Clock {
        Clock { name: name.into(), line: String::new(), tsc_conversion: None }
    }

    #[test]
    fn both_clocks_go_on_together() {
        let [one, other] = [0, 20].map(|ms| {
            std::thread::sleep(std::time::Duration::from_millis(ms));
            UnixPair::now(&clock("mono")).unwrap()
        });
        let (trace_ns, unix_ns) = (other.trace_ns - one.trace_ns, other.unix_ns - one.unix_ns);
        // Clocks that are set or slewed meanwhile go apart by no more than this.
        let apart_ns = trace_ns.abs_diff(unix_ns);
        assert!(trace_ns >= 20_000_000 && apart_ns < 10_000_000 + one.error_ns + other.error_ns);
    }

    #[test]
    fn ticks_become_nanoseconds_and_clocks_of_the_kernel_alone_have_no_pair() {
        let half = TscConversion { mult: 1 << 31, shift: 32, zero_ns: 7 };
        assert_eq!(converted(2_000, half), 1_007);
        assert_eq!(UnixPair::now(&clock("local")), None);
    }
}
