//! Metrics as text for Prometheus or as OpenMetrics: families with their help, samples with escaped labels, numbers.

use std::fmt::{self, Display, Write};

use crate::Histogram;

use crate::metrics::exposition::{Exposition, Format, Kind, Labels, Value};

/// The text so far.
#[derive(Debug)]
pub(crate) struct Text {
    format: Format,
    out: String,
    family: &'static str,
    kind: Kind,
}

impl Text {
    pub(crate) fn new(format: Format) -> Self {
        Self { format, out: String::new(), family: "", kind: Kind::Gauge }
    }

    /// Returns the whole text.
    pub(crate) fn end(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.out += "# EOF\n";
        }
        self.out
    }

    fn line(&mut self, suffix: &str, labels: Labels<'_>, edge: Option<f64>, value: impl Display) {
        self.out += self.family;
        self.out += suffix;
        let mut open = '{';
        for (name, value) in labels {
            let _ = write!(self.out, "{open}{name}=\"{}\"", Escaped(value));
            open = ',';
        }
        match edge {
            Some(edge) if edge.is_infinite() => {
                let _ = write!(self.out, "{open}le=\"+Inf\"}}");
            }
            Some(edge) => {
                let _ = write!(self.out, "{open}le=\"{edge:?}\"}}");
            }
            None if open == ',' => self.out.push('}'),
            None => {}
        }
        let _ = writeln!(self.out, " {value}");
    }
}

impl Exposition for Text {
    fn family(&mut self, name: &'static str, kind: Kind, help: &str) {
        (self.family, self.kind) = (name, kind);
        let word = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let total = match (self.format, kind) {
            (Format::Text, Kind::Counter) => "_total",
            _ => "",
        };
        let _ = writeln!(self.out, "# HELP {name}{total} {help}\n# TYPE {name}{total} {word}");
        if self.format == Format::OpenMetrics && name.ends_with("_seconds") {
            let _ = writeln!(self.out, "# UNIT {name} seconds");
        }
    }

    fn sample(&mut self, labels: Labels<'_>, value: Value) {
        let suffix = if self.kind == Kind::Counter { "_total" } else { "" };
        self.line(suffix, labels, None, value);
    }

    /// Cumulative counts at each power of two, the total, and the sum.
    fn histogram(&mut self, labels: Labels<'_>, times: &Histogram, sum_ns: u64) {
        let mut below = 0u64;
        for (octave, counts) in times.counts().chunks(BUCKETS_OF_EDGE).enumerate() {
            below = counts.iter().copied().fold(below, u64::saturating_add);
            let edge = Histogram::end_s(octave * BUCKETS_OF_EDGE + BUCKETS_OF_EDGE - 1);
            self.line("_bucket", labels, Some(edge), below);
        }
        let count = times.count();
        self.line("_bucket", labels, Some(f64::INFINITY), count);
        self.line("_sum", labels, None, Value::Seconds(sum_ns));
        self.line("_count", labels, None, count);
    }
}

/// Buckets between two shown bounds: a power of two.
const BUCKETS_OF_EDGE: usize = 4;
/// Number of lines of a histogram.
pub(crate) const HISTOGRAM_SERIES: usize = crate::BUCKETS / BUCKETS_OF_EDGE + 3;

/// Escapes a label's value.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for char in self.0.chars() {
            match char {
                '\\' => f.write_str("\\\\")?,
                '"' => f.write_str("\\\"")?,
                '\n' => f.write_str("\\n")?,
                char => f.write_char(char)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A label's value, decoded like a reader does.
    fn read(escaped: &str) -> String {
        let mut value = String::new();
        let mut chars = escaped.chars();
        while let Some(char) = chars.next() {
            assert!(char != '"' && char != '\n', "{escaped}");
            match char {
                '\\' => value.push(match chars.next().unwrap() {
                    'n' => '\n',
                    same @ ('\\' | '"') => same,
                    other => panic!("\\{other}"),
                }),
                char => value.push(char),
            }
        }
        value
    }

    #[test]
    fn each_format_has_its_own_heads() {
        let text = |format| {
            let mut text = Text::new(format);
            text.family("some_seconds", Kind::Counter, "Time.");
            text.sample(&[("vm", "a\"b"), ("x", "")], Value::Seconds(1_000_000_005));
            text.family("things", Kind::Gauge, "Things.");
            text.sample(&[], Value::Count(5));
            text.end()
        };
        assert_eq!(
            text(Format::Text),
            "# HELP some_seconds_total Time.\n# TYPE some_seconds_total counter\n\
             some_seconds_total{vm=\"a\\\"b\",x=\"\"} 1.000000005\n\
             # HELP things Things.\n# TYPE things gauge\nthings 5\n"
        );
        assert_eq!(
            text(Format::OpenMetrics),
            "# HELP some_seconds Time.\n# TYPE some_seconds counter\n# UNIT some_seconds seconds\n\
             some_seconds_total{vm=\"a\\\"b\",x=\"\"} 1.000000005\n\
             # HELP things Things.\n# TYPE things gauge\nthings 5\n# EOF\n"
        );
    }

    #[test]
    fn edges_are_powers_of_two_and_sums_are_exact() {
        let mut counts = [0; crate::BUCKETS];
        counts[..8].fill(1);
        counts[95] = 5;
        let mut text = Text::new(Format::Text);
        text.family("t", Kind::Histogram, "T.");
        // One is beyond the last bucket.
        text.histogram(&[("vm", "a")], &Histogram::new(counts, 14), 7);
        let text = text.end();
        let value = |le: &str| {
            let head = format!("t_bucket{{vm=\"a\",le=\"{le}\"}} ");
            text.lines().find_map(|line| line.strip_prefix(&head)).map(str::to_owned)
        };
        assert_eq!(value("1.1920928955078125e-7").as_deref(), Some("4"));
        assert_eq!(value("2.384185791015625e-7").as_deref(), Some("8"));
        assert_eq!(value("0.5").as_deref(), Some("8"));
        assert_eq!(value("1.0").as_deref(), Some("13"));
        assert_eq!(value("16.0").as_deref(), Some("13"));
        assert_eq!(value("+Inf").as_deref(), Some("14"));
        assert!(text.ends_with("t_sum{vm=\"a\"} 0.000000007\nt_count{vm=\"a\"} 14\n"));
        assert_eq!(text.lines().count(), HISTOGRAM_SERIES + 2);
    }

    proptest! {
        #[test]
        fn any_value_is_read_as_it_was(value in ".*", more in "[\\\\\"\n]{0,5}") {
            let value = value + &more;
            prop_assert_eq!(read(&Escaped(&value).to_string()), value);
        }
    }
}
