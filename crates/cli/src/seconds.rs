//! A time as people write it: as events are printed, in seconds with a fraction, or in ticks
//! where the recording's clock has no seconds.

use std::fmt;
use std::str::FromStr;

/// A time on the recording's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Seconds {
    /// What stands before the point: seconds or ticks.
    pub(crate) whole: u64,
    nanos: u32,
}

impl Seconds {
    /// The same in nanoseconds.
    pub(crate) fn ns(self) -> u64 {
        self.whole.saturating_mul(1_000_000_000).saturating_add(u64::from(self.nanos))
    }
}

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fraction = format!("{:09}", self.nanos);
        match fraction.trim_end_matches('0') {
            "" => write!(f, "{}", self.whole),
            digits => write!(f, "{}.{digits}", self.whole),
        }
    }
}

/// A text that is no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no time; write seconds with up to nine digits after the decimal point, such as 42.342151, or +1.5 for \
     1.5 s from the beginning"
)]
pub(crate) struct NoTime;

/// A time, by a recording's clock or from its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// As events are printed.
    At(Seconds),
    /// This long after the first event: `+` comes before it.
    FromBeginning(Seconds),
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(time) => write!(f, "{time}"),
            Self::FromBeginning(time) => write!(f, "+{time}"),
        }
    }
}

/// Whether a range does, whatever it is of.
pub(crate) fn ends_before_it_begins(range: (Option<When>, Option<When>)) -> bool {
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
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = |part: &str| part.bytes().all(|one| one.is_ascii_digit());
        if fraction.len() > 9 || !digits(whole) || !digits(fraction) {
            return Err(NoTime);
        }
        let whole = whole.parse().map_err(|_| NoTime)?;
        let nanos = format!("{fraction:0<9}").parse().map_err(|_| NoTime)?;
        Ok(Self { whole, nanos })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_have_any_number_of_digits_up_to_nine() {
        let ns = |text: &str| text.parse().map(Seconds::ns);
        assert_eq!(ns("42"), Ok(42_000_000_000));
        assert_eq!(ns("42.5"), Ok(42_500_000_000));
        assert_eq!(ns("0.000000001"), Ok(1));
        assert_eq!(ns("18446744073709551615"), Ok(u64::MAX));
        let shown = |text: &str| text.parse::<When>().map(|time| time.to_string());
        for text in ["42", "42.000000001", "+0.25"] {
            assert_eq!(shown(text), Ok(text.to_owned()));
        }
        for wrong in ["", ".5", "abc", "1.0000000001", "-1", "1,5", "99999999999999999999"] {
            assert_eq!(ns(wrong), Err(NoTime), "{wrong}");
        }
    }
}
