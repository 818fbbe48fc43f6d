//! Formats numbers for people: durations with a unit, shares, counts.

/// A duration with three significant digits and its unit; `ticks` if it is not in nanoseconds.
#[must_use]
pub fn time(value: u64, nanoseconds: bool) -> String {
    if !nanoseconds {
        return count(value);
    }
    let steps = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    for (size, unit) in steps {
        if value >= size {
            return format!("{} {unit}", three_digits(value as f64 / size as f64));
        }
    }
    format!("{value} ns")
}

/// The unit of plain times: `ns`, or ticks of the clock.
#[must_use]
pub const fn unit(nanoseconds: bool) -> &'static str {
    if nanoseconds { "ns" } else { "cycles" }
}

fn three_digits(value: f64) -> String {
    match value {
        value if value < 9.995 => format!("{value:.2}"),
        value if value < 99.95 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

/// A share in percent; a dash if the whole is zero.
#[must_use]
pub fn share(part: u64, total: u64) -> String {
    if total == 0 {
        return "-".to_owned();
    }
    format!("{:.2}%", part as f64 * 100.0 / total as f64)
}

/// A count with a noun that has a plural in `s` or `es`: "1 vCPU", "2 vCPUs", "3 stretches".
#[must_use]
pub fn plural(number: u64, noun: &str) -> String {
    let takes_es = ["s", "x", "ch", "sh"].iter().any(|ending| noun.ends_with(ending));
    counted(number, noun, &format!("{noun}{}", if takes_es { "es" } else { "s" }))
}

/// A count with a noun and a verb: "1 event is", "2 events are".
#[must_use]
pub fn counted(number: u64, singular: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { singular } else { many })
}

/// The pronoun for a number of things that the sentence has named.
#[must_use]
pub fn them(number: usize) -> &'static str {
    if number == 1 { "it" } else { "them" }
}

/// A count with thousands separators.
#[must_use]
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A signed number with thousands separators.
#[must_use]
pub fn signed(value: i64) -> String {
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{}", count(value.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_keep_three_digits() {
        assert_eq!(time(999, true), "999 ns");
        assert_eq!(time(1_000, true), "1.00 us");
        assert_eq!(time(12_345, true), "12.3 us");
        assert_eq!(time(999_499, true), "999 us");
        assert_eq!(time(8_942_000_000, true), "8.94 s");
        assert_eq!(time(123_456, false), "123,456");
    }

    #[test]
    fn one_is_no_plural() {
        let branches = [0, 1, 2000].map(|number| plural(number, "more branch"));
        assert_eq!(branches, ["0 more branches", "1 more branch", "2,000 more branches"]);
        assert_eq!([1, 2].map(|number| plural(number, "path")), ["1 path", "2 paths"]);
        assert_eq!([1, 2].map(|number| plural(number, "bus")), ["1 bus", "2 buses"]);
        assert_eq!(
            [1, 2].map(|number| counted(number, "row is", "rows are")),
            ["1 row is", "2 rows are"]
        );
    }

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(count(0), "0");
        assert_eq!(count(1_000), "1,000");
        assert_eq!(count(1_234_567), "1,234,567");
    }
}
