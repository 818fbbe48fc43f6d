//! From a recording's trace clock to Unix time.

/// What is added to times of a trace clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnixClock {
    /// Nanoseconds; `None`: not known, and nothing is added.
    pub offset_ns: Option<i64>,
    /// The sum is no further off; `None`: not known.
    pub error_ns: Option<u64>,
}

impl UnixClock {
    /// Of a recording whose first event, at `first_ns` of its trace clock, was recorded at this time.
    #[must_use]
    pub fn begun_at(begun_unix_ns: u64, first_ns: u64) -> Self {
        let offset = i128::from(begun_unix_ns) - i128::from(first_ns);
        Self { offset_ns: i64::try_from(offset).ok(), error_ns: None }
    }

    /// Of a recording at whose beginning and end both clocks were read together: as they were at its beginning.
    /// Pairs are the trace clock's time, Unix time, and how far apart they were read. `None`: there are none.
    #[must_use]
    pub fn of_pairs(pairs: &[(u64, u64, u64)]) -> Option<Self> {
        let offset = |one: &(u64, u64, u64)| i128::from(one.1) - i128::from(one.0);
        let first = offset(pairs.first()?);
        // What the clocks went apart by since then is an error of all later times.
        let error = |one: &(u64, u64, u64)| {
            let apart_ns = (offset(one) - first).unsigned_abs();
            u64::try_from(apart_ns).unwrap_or(u64::MAX).saturating_add(one.2)
        };
        let error_ns = pairs.iter().map(error).max();
        Some(Self { offset_ns: i64::try_from(first).ok(), error_ns })
    }

    /// A time of the trace clock.
    #[inline]
    #[must_use]
    pub fn unix_ns(self, trace_ns: u64) -> i64 {
        let trace_ns = i64::try_from(trace_ns).unwrap_or(i64::MAX);
        trace_ns.saturating_add(self.offset_ns.unwrap_or(0))
    }
}

/// Length of the slices of time that rollups sum up.
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
        // 300 ns faster, and read within 30.
        assert_eq!(clock.error_ns, Some(330));
        assert_eq!(UnixClock::of_pairs(&[]), None);
    }

    #[test]
    fn slices_hold_their_times() {
        for ns in [-1, 0, 1, SLICE_NS - 1, SLICE_NS, 1_795_305_600_123_456_789] {
            let slice = slice_of(ns);
            assert!(slice <= ns && ns < slice + SLICE_NS && slice % SLICE_NS == 0, "{ns}");
        }
    }
}
