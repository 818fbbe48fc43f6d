//! Times on the command line, in the syntax of hyperscope's options: seconds, or a number with a unit.

use std::time::Duration;

/// Units, and their nanoseconds.
const UNITS: [(&str, f64); 8] = [
    ("", 1e9),
    ("ns", 1.0),
    ("us", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 60e9),
    ("min", 60e9),
    ("h", 3600e9),
];

/// Parses a time: `8`, `8s`, `500ms`, `2m`.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|char: char| char.is_ascii_alphabetic());
    let unit = text.get(digits.len()..).unwrap_or_default();
    let number: f64 =
        digits.parse().map_err(|_| format!("{text:?} is not a time: write 500ms, 10s or 2m"))?;
    let unit_ns = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, ns)| *ns);
    let unit_ns =
        unit_ns.ok_or_else(|| format!("unknown unit {unit:?}: use ns, us, ms, s, m or h"))?;
    let time = Duration::try_from_secs_f64(number * unit_ns / 1e9);
    let time = time.map_err(|_| format!("{text:?} is too long"))?;
    if time.is_zero() { Err(format!("{text:?} must be longer than 0")) } else { Ok(time) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let ms = |text| time(text).map(|time| time.as_millis());
        for (text, expected) in [("8", 8_000), ("8s", 8_000), ("500ms", 500), ("2m", 120_000)] {
            assert_eq!(ms(text), Ok(expected), "{text}");
        }
        assert_eq!((ms("1.5h"), ms("2000us")), (Ok(5_400_000), Ok(2)));
        for wrong in ["", "s", "8x", "-1", "nan", "1e999", "0", "0s"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
