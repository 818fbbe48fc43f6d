//! Converts times of a recording's trace clock to Unix time.

/// The offset from a trace clock to Unix time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnixClock {
    /// Nanoseconds to add; `None`: unknown, and nothing is added.
    pub offset_ns: Option<i64>,
    /// Max error of the sum; `None`: unknown.
    pub error_ns: Option<u64>,
}

impl UnixClock {
    /// For a recording whose first event, at `first_ns` of its trace clock, happened at this Unix time.
    #[must_use]
    pub fn begun_at(begun_unix_ns: u64, first_ns: u64) -> Self {
        let offset = i128::from(begun_unix_ns) - i128::from(first_ns);
        Self { offset_ns: i64::try_from(offset).ok(), error_ns: None }
    }

    /// For a recording with readings of both clocks at its start and end; uses those at the start. A reading is the
    /// trace clock's time, Unix time, and the duration of the reading. `None` without readings.
    #[must_use]
    pub fn of_pairs(pairs: &[(u64, u64, u64)]) -> Option<Self> {
        let offset = |pair: &(u64, u64, u64)| i128::from(pair.1) - i128::from(pair.0);
        let first = offset(pairs.first()?);
        // The drift between the readings is an error of all later times.
        let error = |pair: &(u64, u64, u64)| {
            let apart_ns = (offset(pair) - first).unsigned_abs();
            u64::try_from(apart_ns).unwrap_or(u64::MAX).saturating_add(pair.2)
        };
        let error_ns = pairs.iter().map(error).max();
        Some(Self { offset_ns: i64::try_from(first).ok(), error_ns })
    }

    /// Converts a time of the trace clock.
    #[inline]
    #[must_use]
    pub fn unix_ns(self, trace_ns: u64) -> i64 {
        let trace_ns = i64::try_from(trace_ns).unwrap_or(i64::MAX);
        trace_ns.saturating_add(self.offset_ns.unwrap_or(0))
    }

    /// The first trace clock time that converts to this time or a later one; `None` if all are earlier.
    #[must_use]
    pub fn trace_ns(self, unix_ns: i64) -> Option<u64> {
        let ns = i128::from(unix_ns) - i128::from(self.offset_ns.unwrap_or(0));
        // Stamps above `i64::MAX`, from damaged records, convert like `i64::MAX`: if that is too early, so are
        // they.
        i64::try_from(ns.max(0)).ok().map(i64::unsigned_abs)
    }
}

/// Length of the slices over which rollups sum.
pub const SLICE_NS: i64 = 10_000_000_000;

/// The slice that a time is in.
#[inline]
#[must_use]
pub fn slice_of(unix_ns: i64) -> i64 {
    unix_ns.div_euclid(SLICE_NS).saturating_mul(SLICE_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_clocks_say_how_far_they_went_apart() {
        let pairs = [(1_000, 5_000_000_000, 20), (2_000, 5_000_001_300, 30)];
        let clock = UnixClock::of_pairs(&pairs).unwrap();
        assert_eq!(clock.unix_ns(1_000), 5_000_000_000);
        // 300 ns of drift, and a reading of 30 ns.
        assert_eq!(clock.error_ns, Some(330));
        assert_eq!(UnixClock::of_pairs(&[]), None);
    }

    #[test]
    fn a_time_is_found_on_the_trace_clock() {
        let clock = |offset| UnixClock { offset_ns: Some(offset), error_ns: None };
        assert_eq!(clock(4_000).trace_ns(5_000), Some(1_000));
        assert_eq!(clock(4_000).trace_ns(-1), Some(0));
        assert_eq!(UnixClock::default().trace_ns(7), Some(7));
        assert_eq!(clock(-5).trace_ns(i64::MAX), None);
        let last = i64::MAX.unsigned_abs();
        for clock in [i64::MIN, -5, 0, 4_000, i64::MAX].map(clock) {
            for unix_ns in [i64::MIN, -7, 0, 7, 5_000, i64::MAX - 5, i64::MAX] {
                let found = clock.trace_ns(unix_ns);
                let near = found.map_or([0, last], |found| [found.saturating_sub(1), found]);
                for ns in near.into_iter().chain([0, last - 1, last, last + 1, u64::MAX]) {
                    let is_late = clock.unix_ns(ns) >= unix_ns;
                    assert_eq!(
                        found.is_some_and(|found| ns >= found),
                        is_late,
                        "{clock:?} {unix_ns} {ns}"
                    );
                }
            }
        }
    }

    #[test]
    fn slices_hold_their_times() {
        for ns in [-1, 0, 1, SLICE_NS - 1, SLICE_NS, 1_795_305_600_123_456_789] {
            let slice = slice_of(ns);
            assert!(slice <= ns && ns < slice + SLICE_NS && slice % SLICE_NS == 0, "{ns}");
        }
    }
}
