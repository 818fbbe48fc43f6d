//! Metrics of a workload, extracted from its output.

use regex::{Regex, RegexBuilder};
use serde_json::Value;

/// Max size of a compiled pattern.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// A number in a workload's output.
#[derive(Clone, Debug)]
pub struct Metric {
    /// What it is called.
    pub name: String,
    wanted: MetricPattern,
}

#[derive(Clone, Debug)]
enum MetricPattern {
    Pattern(Regex),
    /// Keys and indices in a JSON document.
    Path(Vec<String>),
}

/// Why a metric can't be parsed, or its number not be found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetricError {
    /// It has neither the form `NAME=REGEX` nor `NAME=json:PATH`.
    #[error(
        "{0:?} is not a metric: write NAME=REGEX with a group around the number, or NAME=json:a.b.0"
    )]
    Form(String),
    /// The pattern is invalid.
    #[error("{0}")]
    Pattern(String),
    /// The output has no such number.
    #[error("the workload printed no number for the metric {0}")]
    Missing(String),
}

impl Metric {
    /// Parses `NAME=REGEX` or `NAME=json:PATH`.
    ///
    /// # Errors
    /// When it has neither form.
    pub fn parse(text: &str) -> Result<Self, MetricError> {
        let form = || MetricError::Form(text.to_owned());
        let (name, wanted) = text.split_once('=').ok_or_else(form)?;
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
        if name.is_empty() || wanted.is_empty() || !name.chars().all(is_name) {
            return Err(form());
        }
        let wanted = match wanted.strip_prefix("json:") {
            Some(path) => {
                let keys = path.trim_start_matches(['$', '.']).split('.').map(str::to_owned);
                MetricPattern::Path(keys.collect())
            }
            None => {
                let pattern = RegexBuilder::new(wanted)
                    .multi_line(true)
                    .size_limit(MAX_PATTERN_BYTES)
                    .build();
                MetricPattern::Pattern(
                    pattern.map_err(|error| MetricError::Pattern(error.to_string()))?,
                )
            }
        };
        Ok(Self { name: name.to_owned(), wanted })
    }

    /// Finds its number in a workload's output: the first match.
    ///
    /// # Errors
    /// When there is none.
    pub fn find(&self, output: &str) -> Result<f64, MetricError> {
        let found = match &self.wanted {
            MetricPattern::Pattern(pattern) => pattern.captures(output).and_then(|found| {
                let group = found.get(1).or_else(|| found.get(0))?;
                group.as_str().trim().parse::<f64>().ok()
            }),
            MetricPattern::Path(keys) => number_at(output, keys),
        };
        found
            .filter(|value| value.is_finite())
            .ok_or_else(|| MetricError::Missing(self.name.clone()))
    }
}

/// The number at a path of the JSON document in the output, or in its last line.
fn number_at(output: &str, keys: &[String]) -> Option<f64> {
    let last = output.trim_end().lines().next_back().unwrap_or("");
    let document: Value =
        serde_json::from_str(output).or_else(|_| serde_json::from_str(last)).ok()?;
    let at = keys.iter().try_fold(&document, |value, key| match value {
        Value::Array(values) => values.get(key.parse::<usize>().ok()?),
        value => value.get(key),
    })?;
    at.as_f64().or_else(|| at.as_str()?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found() {
        let find = |metric: &str, output: &str| Metric::parse(metric).unwrap().find(output);
        let output = "starting\nreq/s: 1234.5\np99 = 17 us\n";
        assert_eq!(find("rate=^req/s: ([0-9.]+)$", output), Ok(1234.5));
        assert_eq!(find("p99=[0-9]+", "a 17"), Ok(17.0));
        assert_eq!(find("x=json:end.sum.0.bps", r#"{"end":{"sum":[{"bps":1e9}]}}"#), Ok(1e9));
        assert_eq!(find("x=json:$.a", "warning\n{\"a\": \"3\"}\n"), Ok(3.0));
        assert_eq!(find("x=([a-z]+)", output), Err(MetricError::Missing("x".to_owned())));
        assert_eq!(find("x=json:a", "no json"), Err(MetricError::Missing("x".to_owned())));
    }

    #[test]
    fn what_is_no_metric_is_refused() {
        for text in ["rate", "=x", "rate=", "a b=x"] {
            assert!(matches!(Metric::parse(text), Err(MetricError::Form(_))), "{text}");
        }
        assert!(matches!(Metric::parse("rate=("), Err(MetricError::Pattern(_))));
        assert!(matches!(Metric::parse("rate=a{9999}{9999}"), Err(MetricError::Pattern(_))));
    }
}
