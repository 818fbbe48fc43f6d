//! Parses the time of a line: seconds, the kernel's microseconds, milliseconds of its verbose
//! format, or ticks.

use super::all_digits;

/// The time of an event, as in its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::text) struct Time {
    /// Nanoseconds, or ticks.
    pub(in crate::text) stamp: u64,
    /// Digits after the decimal point of seconds; `None` for ticks of an unknown clock.
    pub(in crate::text) digits: Option<u32>,
}

/// Marks of long delays after a time in the kernel's latency format (`trace_find_mark` of
/// `kernel/trace/trace_output.c`).
const DELAY_MARKS: [char; 7] = ['$', '@', '*', '#', '!', '+', ' '];

/// The time at the end of a text, and the text before it.
pub(super) fn last(text: &str) -> Option<(&str, Time)> {
    let text = text.trim_end();
    // `[4ed97144] 576.349ms (+0.001ms)` of the verbose format.
    let text = match text.rsplit_once(" (+") {
        Some((before, rest)) if rest.ends_with(')') && !rest.contains(' ') => before,
        _ => text,
    };
    let begin = text.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let (before, word) = text.split_at_checked(begin)?;
    if let Some(time) = time(word) {
        return Some((before, time));
    }
    if let Some(time) =
        time(word.trim_end_matches(DELAY_MARKS)).filter(|time| time.digits.is_some())
    {
        return Some((before, time));
    }
    let (place, ticks) = word.split_at_checked(ticks_at(word)?)?;
    Some((text.get(..begin + place.len())?, Time { stamp: number(ticks)?, digits: None }))
}

/// Minimum digits of ticks without a space before them: trace-cmd pads shorter numbers.
const FULL_WIDTH: usize = 12;
/// Number of flag characters.
const FLAGS: usize = 5;

/// Start of the ticks in `[000]161998252032` and `1d.s3.161998252032`.
fn ticks_at(word: &str) -> Option<usize> {
    let behind_bracket = word.rfind(']').map(|at| at + 1);
    let behind_flags = || Some(word.find(|letter: char| !letter.is_ascii_digit())? + FLAGS);
    let at = behind_bracket.or_else(behind_flags)?;
    let ticks = word.get(at..)?;
    (ticks.len() >= FULL_WIDTH && all_digits(ticks)).then_some(at)
}

fn time(word: &str) -> Option<Time> {
    if let Some(micros) = word.strip_suffix("us") {
        return scaled(micros, 1_000);
    }
    if let Some(millis) = word.strip_suffix("ms") {
        let (millis, fraction) = millis.split_once('.')?;
        let micros = number(fraction).filter(|_| fraction.len() == 3)?;
        let whole_micros = number(millis)?.checked_mul(1_000)?;
        return Some(Time {
            stamp: whole_micros.checked_add(micros)?.checked_mul(1_000)?,
            digits: Some(6),
        });
    }
    match word.split_once('.') {
        Some((seconds, fraction)) => of_seconds(seconds, fraction),
        None => Some(Time { stamp: number(word)?, digits: None }),
    }
}

fn scaled(micros: &str, by: u64) -> Option<Time> {
    Some(Time { stamp: number(micros)?.checked_mul(by)?, digits: Some(6) })
}

/// Seconds with up to nine digits after the decimal point.
fn of_seconds(seconds: &str, fraction: &str) -> Option<Time> {
    let digits = u32::try_from(fraction.len()).ok().filter(|digits| (1..=9).contains(digits))?;
    let fraction = number(fraction)?.checked_mul(10_u64.pow(9 - digits))?;
    let stamp = number(seconds)?.checked_mul(1_000_000_000)?.checked_add(fraction)?;
    Some(Time { stamp, digits: Some(digits) })
}

/// A number with only decimal digits.
fn number(text: &str) -> Option<u64> {
    all_digits(text).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_every_form_that_kernels_and_tools_print() {
        for (text, stamp, digits) in [
            ("a  42.342151", 42_342_151_000, Some(6)),
            ("a 42.342151007", 42_342_151_007, Some(9)),
            ("a 63737004us ", 63_737_004_000, Some(6)),
            ("a 20763us+", 20_763_000, Some(6)),
            ("a 20834us#", 20_834_000, Some(6)),
            ("[4ed97144] 576.349ms (+0.001ms)", 576_349_000, Some(6)),
            ("[000000004ed97144] 576349 (+12)", 576_349, None),
            ("a 81234567890123", 81_234_567_890_123, None),
        ] {
            let found = last(text).map(|(_, time)| time);
            assert_eq!(found, Some(Time { stamp, digits }), "{text}");
        }
        for (text, place) in
            [("a-7 [000]161998252032", "a-7 [000]"), ("a-7  1d.s3.161998252032", "a-7  1d.s3.")]
        {
            let time = Time { stamp: 161_998_252_032, digits: None };
            assert_eq!(last(text), Some((place, time)), "{text}");
        }
        for text in ["a", "a 1.0000000001", "a 99999999999999999999.0", "a 1.", "a .5", "a 12+", ""]
        {
            assert_eq!(last(text), None, "{text}");
        }
    }
}
