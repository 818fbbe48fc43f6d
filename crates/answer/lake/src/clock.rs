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

/// Nanoseconds of a day.
const DAY_NS: i64 = 86_400_000_000_000;

/// The day of a time in UTC, as `2026-11-22`.
#[must_use]
pub fn date_of(unix_ns: i64) -> String {
    // Days since the first of March of the year 0, in eras of 400 years.
    let days = unix_ns.div_euclid(DAY_NS) + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let date = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{date:02}")
}

/// When a day begins in UTC, in Unix time; `None`: it is none, or none of this time.
#[must_use]
pub fn begin_of(date: &str) -> Option<i64> {
    let mut parts = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    if !(1700..2200).contains(&year) || !(1..=12).contains(&month) {
        return None;
    }
    // A year that begins in March: leap days are at its end.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let begin = (days + (153 * month + 2) / 5 + day - 1 - 719_468) * DAY_NS;
    (date_of(begin) == date).then_some(begin)
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
    fn days_are_those_of_the_calendar() {
        // As `date -u -d @SECONDS +%F` prints them.
        let days = [
            (0, "1970-01-01"),
            (951_782_400, "2000-02-29"),
            (951_868_800, "2000-03-01"),
            (1_795_305_600, "2026-11-22"),
            (1_795_391_999, "2026-11-22"),
            (4_107_542_400, "2100-03-01"),
        ];
        for (seconds, date) in days {
            assert_eq!(date_of(seconds * 1_000_000_000), date);
            assert_eq!(begin_of(date).map(date_of).as_deref(), Some(date));
        }
        assert_eq!(date_of(-1), "1969-12-31");
        assert_eq!(begin_of("2026-11-22"), Some(1_795_305_600_000_000_000));
        assert_eq!((begin_of("2026-02-29"), begin_of("x")), (None, None));
    }

    #[test]
    fn slices_hold_their_times() {
        for ns in [-1, 0, 1, SLICE_NS - 1, SLICE_NS, 1_795_305_600_123_456_789] {
            let slice = slice_of(ns);
            assert!(slice <= ns && ns < slice + SLICE_NS && slice % SLICE_NS == 0, "{ns}");
        }
    }
}
