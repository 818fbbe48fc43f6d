//! A time as users write it: seconds with a fraction, as printed with events, or a number with a
//! unit; ticks if the recording's clock has no seconds.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Units of time, in nanoseconds.
const UNITS: [(&str, u64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", NS_PER_S),
    ("m", 60 * NS_PER_S),
    ("min", 60 * NS_PER_S),
    ("h", 3600 * NS_PER_S),
];
const NS_PER_S: u64 = 1_000_000_000;
/// Digits after the decimal point: seconds have nine, down to nanoseconds.
const MAX_FRACTION: usize = 9;

/// A time on the recording's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seconds {
    /// The digits before the point: seconds or ticks.
    pub integer: u64,
    nanos: u32,
    /// Whether a unit was written: then these are seconds, even if the clock counts ticks.
    pub has_unit: bool,
}

impl Seconds {
    /// The time in nanoseconds.
    #[must_use]
    pub fn ns(self) -> u64 {
        self.integer.saturating_mul(NS_PER_S).saturating_add(u64::from(self.nanos))
    }

    /// The time as a duration.
    #[must_use]
    pub const fn duration(self) -> Duration {
        Duration::new(self.integer, self.nanos)
    }
}

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fraction = format!("{:09}", self.nanos);
        match fraction.trim_end_matches('0') {
            "" => write!(f, "{}", self.integer),
            digits => write!(f, "{}.{digits}", self.integer),
        }
    }
}

/// The error for a text that is no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid time: write seconds with up to nine decimal places, such as 42.342151, or a number with a unit (ns, us, ms, s, m, \
     h), such as 500ms; a leading + counts from the beginning, as in +1.5 or +2m"
)]
pub struct NoTime;

/// A time, on a recording's clock or from its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// On the recording's clock, as events are printed.
    At(Seconds),
    /// From the first event on: written with a leading `+`.
    FromBeginning(Seconds),
}

impl When {
    /// The time as written, without its origin.
    #[must_use]
    pub const fn seconds(self) -> Seconds {
        match self {
            Self::At(time) | Self::FromBeginning(time) => time,
        }
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(time) => write!(f, "{time}"),
            Self::FromBeginning(time) => write!(f, "+{time}"),
        }
    }
}

/// Whether a range ends before it begins; `false` if its ends have different origins.
#[must_use]
pub fn ends_before_it_begins(range: (Option<When>, Option<When>)) -> bool {
    match range {
        (Some(When::At(from)), Some(When::At(to))) => from > to,
        (Some(When::FromBeginning(from)), Some(When::FromBeginning(to))) => from > to,
        _ => false,
    }
}

impl FromStr for When {
    type Err = NoTime;

    fn from_str(text: &str) -> Result<Self, NoTime> {
        match text.strip_prefix('+') {
            Some(rest) => rest.parse().map(Self::FromBeginning),
            None => text.parse().map(Self::At),
        }
    }
}

impl FromStr for Seconds {
    type Err = NoTime;

    fn from_str(text: &str) -> Result<Self, NoTime> {
        let unit_at =
            text.find(|character: char| character.is_ascii_alphabetic()).unwrap_or(text.len());
        let (number, unit) = text.split_at_checked(unit_at).ok_or(NoTime)?;
        let decimal = Decimal::read(number).ok_or(NoTime)?;
        if unit.is_empty() {
            return decimal.seconds().ok_or(NoTime);
        }
        let (_, unit_ns) = UNITS.iter().find(|(name, _)| *name == unit).ok_or(NoTime)?;
        decimal.times(*unit_ns).ok_or(NoTime)
    }
}

/// A number as written: digits, and digits after the decimal point.
struct Decimal<'t> {
    integer: u64,
    fraction: &'t str,
}

impl<'t> Decimal<'t> {
    fn read(text: &'t str) -> Option<Self> {
        let (integer, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if fraction.len() > MAX_FRACTION || !digits(integer) || !digits(fraction) {
            return None;
        }
        // `.5` is a number; a point alone is not.
        let integer = if integer.is_empty() && !fraction.is_empty() { "0" } else { integer };
        Some(Self { integer: integer.parse().ok()?, fraction })
    }

    /// The number as seconds, or ticks.
    fn seconds(&self) -> Option<Seconds> {
        let nanos = format!("{:0<MAX_FRACTION$}", self.fraction).parse().ok()?;
        Some(Seconds { integer: self.integer, nanos, has_unit: false })
    }

    /// The number of these units. Fractions of a nanosecond are dropped.
    fn times(&self, unit_ns: u64) -> Option<Seconds> {
        let nanos = u128::from(self.seconds()?.nanos);
        let integer_ns = u128::from(self.integer).checked_mul(u128::from(unit_ns))?;
        let fraction = nanos.checked_mul(u128::from(unit_ns))? / u128::from(NS_PER_S);
        let ns = u64::try_from(integer_ns.checked_add(fraction)?).ok()?;
        let nanos = u32::try_from(ns % NS_PER_S).ok()?;
        Some(Seconds { integer: ns / NS_PER_S, nanos, has_unit: true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ns(text: &str) -> Result<u64, NoTime> {
        text.parse().map(Seconds::ns)
    }

    #[test]
    fn fractions_have_any_number_of_digits_up_to_nine() {
        assert_eq!(ns("42"), Ok(42_000_000_000));
        assert_eq!(ns("42.5"), Ok(42_500_000_000));
        assert_eq!(ns(".5"), Ok(500_000_000));
        assert_eq!(ns("0.000000001"), Ok(1));
        assert_eq!(ns("18446744073709551615"), Ok(u64::MAX));
        let shown = |text: &str| text.parse::<When>().map(|time| time.to_string());
        for text in ["42", "42.000000001", "+0.25"] {
            assert_eq!(shown(text), Ok(text.to_owned()));
        }
        for wrong in ["", ".", "abc", "1.0000000001", "-1", "1,5", "99999999999999999999"] {
            assert_eq!(ns(wrong), Err(NoTime), "{wrong}");
        }
    }

    #[test]
    fn a_number_with_a_unit_is_that_many_units() {
        for (text, expected) in [
            ("250ns", 250),
            ("1.5us", 1_500),
            ("500ms", 500_000_000),
            ("10s", 10_000_000_000),
            ("2m", 120_000_000_000),
            ("2min", 120_000_000_000),
            ("0.5h", 1_800_000_000_000),
            ("1.9ns", 1),
        ] {
            assert_eq!(ns(text), Ok(expected), "{text}");
        }
        assert_eq!("+2m".parse::<When>().map(|time| time.to_string()), Ok("+120".to_owned()));
        for wrong in ["10y", "s", "1.2.3s", "-1s", "9999999999999h", "1e9", "1e999s", "nan"] {
            assert_eq!(ns(wrong), Err(NoTime), "{wrong}");
        }
    }
}
