//! A moment as people write it: seconds with a fraction, as events are printed.

use std::str::FromStr;

/// A moment on the recording's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Seconds {
    /// The same in nanoseconds.
    pub(crate) ns: u64,
}

/// A text that is no moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no time; write seconds with up to nine digits behind the point, such as 42.342151")]
pub(crate) struct NoTime;

impl FromStr for Seconds {
    type Err = NoTime;

    fn from_str(text: &str) -> Result<Self, NoTime> {
        let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = |part: &str| part.bytes().all(|one| one.is_ascii_digit());
        if seconds.is_empty() || fraction.len() > 9 || !digits(seconds) || !digits(fraction) {
            return Err(NoTime);
        }
        let seconds: u64 = seconds.parse().map_err(|_| NoTime)?;
        let fraction: u64 = format!("{fraction:0<9}").parse().map_err(|_| NoTime)?;
        let ns = seconds.checked_mul(1_000_000_000).and_then(|ns| ns.checked_add(fraction));
        ns.map(|ns| Self { ns }).ok_or(NoTime)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_have_any_number_of_digits_up_to_nine() {
        let ns = |text: &str| text.parse::<Seconds>().map(|seconds| seconds.ns);
        assert_eq!(ns("42"), Ok(42_000_000_000));
        assert_eq!(ns("42.5"), Ok(42_500_000_000));
        assert_eq!(ns("0.000000001"), Ok(1));
        for wrong in ["", ".5", "abc", "1.0000000001", "-1", "1,5", "99999999999999999999"] {
            assert_eq!(ns(wrong), Err(NoTime), "{wrong}");
        }
    }
}
