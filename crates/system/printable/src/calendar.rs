//! Converts between Unix time and dates: in UTC, with the rules of the Gregorian calendar.
//!
//! ```
//! assert_eq!(printable::calendar::date_of(1_795_305_600_000_000_000), "2026-11-22");
//! assert_eq!(printable::calendar::begin_of("2026-11-22"), Some(1_795_305_600_000_000_000));
//! assert_eq!(printable::calendar::stamp_of(1_795_305_601), "20261122T000001Z");
//! ```

#![expect(
    clippy::arithmetic_side_effects,
    reason = "days that 64 bits of nanoseconds hold are few, and dates are checked before they are counted with"
)]

/// Nanoseconds of a day.
const DAY_NS: i64 = 86_400_000_000_000;
/// Seconds of a day.
const DAY_S: i64 = 86_400;
/// Days from 1 March of year 0 to 1 January 1970.
const BEFORE: i64 = 719_468;

/// Year, month and day from the number of days since 1 January 1970.
fn civil(days: i64) -> (i64, i64, i64) {
    // Eras of 400 years begin in March, so that the leap day is the last day of a year.
    let days = days.saturating_add(BEFORE);
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let date = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, date)
}

/// The date of a time, such as `2026-11-22`.
#[must_use]
pub fn date_of(unix_ns: i64) -> String {
    let (year, month, day) = civil(unix_ns.div_euclid(DAY_NS));
    format!("{year:04}-{month:02}-{day:02}")
}

/// A second, such as `20261125T013905Z`: names with this prefix sort by time.
#[must_use]
pub fn stamp_of(unix_s: i64) -> String {
    let (year, month, day) = civil(unix_s.div_euclid(DAY_S));
    let second = unix_s.rem_euclid(DAY_S);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// The start of a day in Unix time; `None` for an invalid date, or one outside the range.
#[must_use]
pub fn begin_of(date: &str) -> Option<i64> {
    let mut parts = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let is_counted =
        (1700..2200).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_counted {
        return None;
    }
    // Years begin in March, so that leap days are at their end.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let begin = (days + (153 * month + 2) / 5 + day - 1 - BEFORE) * DAY_NS;
    (date_of(begin) == date).then_some(begin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        // As printed by `date -u -d @SECONDS +%F`.
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
        assert_eq!(begin_of("2026-01-9223372036854775807"), None);
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        assert_eq!(stamp_of(0), "19700101T000000Z");
        assert_eq!(stamp_of(951_782_399), "20000228T235959Z");
        assert_eq!(stamp_of(951_868_799), "20000229T235959Z");
        assert_eq!(stamp_of(951_868_800), "20000301T000000Z");
        assert_eq!(stamp_of(1_735_689_599), "20241231T235959Z");
        assert_eq!(stamp_of(4_107_542_400), "21000301T000000Z");
        assert_eq!(stamp_of(-1), "19691231T235959Z");
    }
}
