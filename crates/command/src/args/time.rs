//! Times with their units, as arguments give them.

use std::time::Duration;

use session::Seconds;

/// Reads a time with its unit; without one it is seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let time = text.parse().map(Seconds::duration);
    time.map_err(|_| {
        format!("{text:?} is not a time: write seconds, or a number with a unit (ns, us, ms, s, m, h), such as 500ms, 10s or 2m")
    })
}

/// The same for a duration, which must be longer than 0.
pub fn some_time(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        time if time.is_zero() => Err("must be longer than 0".to_owned()),
        time => Ok(time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let ms = |text| duration(text).map(|time| time.as_millis());
        assert_eq!(ms("500ms"), Ok(500));
        assert_eq!(ms("10"), Ok(10_000));
        assert_eq!(ms("1.5s"), Ok(1500));
        assert_eq!(ms("2m"), Ok(120_000));
        assert_eq!(ms("1h"), Ok(3_600_000));
        assert_eq!((ms("2000us"), ms("3000000ns")), (Ok(2), Ok(3)));
        for wrong in ["", "x", "1y", "-1", "1e999", "nan"] {
            assert!(ms(wrong).is_err(), "{wrong}");
        }
        for none in ["0", "0s", "0ms", "0.0"] {
            assert!(some_time(none).is_err(), "{none}");
        }
    }
}
