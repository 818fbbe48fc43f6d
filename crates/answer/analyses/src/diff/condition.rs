//! Conditions on comparisons for continuous integration: `exits.p99 > +10%`.
//!
//! ```text
//!  [report.][reason:]metric  OP  [+|-]N[%|x|ns|us|ms|s]
//! ```
//! With `%`, `x` or a sign, a condition applies to the change from the first side to the second, otherwise to the
//! value of the second side.

use super::QUESTIONS;
use super::compare::{Diff, DiffRow};
use super::question::{KeyValue, Metric, Question, Unit};

#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The original text.
    pub text: String,
    /// Name of the report, if the condition has one.
    pub report: Option<String>,
    /// Only matches rows with this reason, or with this name anywhere in the group's key.
    pub reason: Option<String>,
    metric: String,
    /// Position of the metric's name in the text.
    metric_at: usize,
    above: bool,
    or_equal: bool,
    limit: Limit,
}

/// The limit of a condition.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    /// Of b / a.
    Ratio(f64),
    /// Of b - a; the flag is set if it has a unit of time.
    Change(f64, bool),
    /// Of b; the flag is set if it has a unit of time.
    Value(f64, bool),
}

/// A syntax error in a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionError {
    text: String,
    at: usize,
    what: String,
}

impl std::error::Error for ConditionError {}

impl std::fmt::Display for ConditionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let before = self.text.get(..self.at).unwrap_or("").chars().count();
        writeln!(f, "{}", self.what)?;
        write!(f, "  {}\n  {:before$}^", self.text, "")
    }
}

/// A row that satisfies a condition.
#[derive(Clone, Debug)]
pub struct MatchingRow<'d> {
    pub row: &'d DiffRow,
    /// P-value with Holm's correction over all rows that conditions apply to.
    pub p: Option<f64>,
}

/// Result of a condition.
#[derive(Debug)]
pub struct Judged<'d> {
    pub condition: &'d Condition,
    /// Number of rows that it applies to.
    pub rows: usize,
    /// Number of rows beyond the limit, significant or not.
    pub beyond: usize,
    /// Rows that satisfy it.
    pub holds: Vec<MatchingRow<'d>>,
}

impl Condition {
    /// Parses a condition.
    ///
    /// # Errors
    ///
    /// On a syntax error, or if no report has the metric.
    pub fn parse(text: &str) -> Result<Self, ConditionError> {
        let condition = Self::read(text)?;
        let error = |at: usize, what: String| ConditionError { text: text.to_owned(), at, what };
        condition.check_names(&error)?;
        Ok(condition)
    }

    /// Parses a condition without checking the metric's name.
    ///
    /// # Errors
    ///
    /// On a syntax error.
    pub fn read(text: &str) -> Result<Self, ConditionError> {
        let error = |at: usize, what: String| ConditionError { text: text.to_owned(), at, what };
        let op_at = text.find(['<', '>', '=', '!']).ok_or_else(|| {
            error(text.len(), "missing operator: add >, >=, < or <=, and a limit".to_owned())
        })?;
        let (name, rest) = text.split_at(op_at);
        let ops =
            [(">=", true, true), ("<=", false, true), (">", true, false), ("<", false, false)];
        let Some((op, above, or_equal)) = ops.into_iter().find(|(op, ..)| rest.starts_with(op))
        else {
            return Err(error(op_at, "unknown operator: use >, >=, < or <=".to_owned()));
        };
        let (report, reason, metric_at) = split_name(name);
        let metric = text.get(metric_at..op_at).unwrap_or("").trim().to_owned();
        let limit_at = op_at + op.len();
        let limit = text.get(limit_at..).unwrap_or("");
        let skipped = limit.len() - limit.trim_start().len();
        let limit = limit_of(limit.trim())
            .map_err(|(at, what)| error(limit_at + skipped + at, what.to_owned()))?;
        Ok(Self {
            text: text.to_owned(),
            report: report.map(str::to_owned),
            reason: reason.map(str::to_owned),
            metric,
            metric_at,
            above,
            or_equal,
            limit,
        })
    }

    /// Name of the metric.
    #[must_use]
    pub fn metric(&self) -> &str {
        &self.metric
    }

    fn check_names(
        &self,
        error: &impl Fn(usize, String) -> ConditionError,
    ) -> Result<(), ConditionError> {
        let reports: Vec<&str> = QUESTIONS.iter().map(|question| question.name).collect();
        if let Some(report) = self.report.as_deref().filter(|report| !reports.contains(report)) {
            let what = format!("unknown report {report:?}; reports are: {}", reports.join(", "));
            return Err(error(0, what));
        }
        let mut questions = QUESTIONS.iter().filter(|question| self.is_of(question));
        if questions.clone().any(|question| self.find_metric(question).is_some()) {
            return Ok(());
        }
        let names = questions.next().map_or_else(String::new, metric_names);
        Err(error(self.metric_at, format!("no metric {:?}: {names}", self.metric)))
    }

    /// Checks that the condition applies to this report.
    ///
    /// # Errors
    ///
    /// If it names another report, or a metric that this report lacks.
    pub fn check_for(&self, question: &Question) -> Result<(), ConditionError> {
        let error = |at, what| Err(ConditionError { text: self.text.clone(), at, what });
        if !self.is_of(question) {
            return error(
                0,
                format!("only metrics of this report can be checked here: {}", question.name),
            );
        }
        let Some(metric) = self.find_metric(question).and_then(|at| question.metrics.get(at))
        else {
            let names = metric_names(question);
            return error(
                self.metric_at,
                format!("{} has no such metric; its metrics are: {names}", question.name),
            );
        };
        let is_time = matches!(metric.unit, Unit::Time | Unit::TimePerSecond);
        self.check_unit(is_time).map_err(|(at, what)| ConditionError {
            text: self.text.clone(),
            at,
            what,
        })
    }

    /// Checks that the limit has a unit of time if, and only if, the metric is a time.
    ///
    /// # Errors
    ///
    /// The position of the wrong unit, and an explanation.
    pub fn check_unit(&self, is_time: bool) -> Result<(), (usize, String)> {
        let (Limit::Change(_, has_unit) | Limit::Value(_, has_unit)) = self.limit else {
            return Ok(());
        };
        let number = self.limit_text();
        if is_time == has_unit {
            return Ok(());
        }
        let what = if is_time {
            format!(
                "{} is a time, but {number} has no unit: write {number}us or {number}ms, or {number}% for a relative change",
                self.metric
            )
        } else {
            format!("{} is not a time: write its limit as a number without a unit", self.metric)
        };
        Err((self.text.trim_end().len() - number.len(), what))
    }

    /// Text of the limit.
    fn limit_text(&self) -> &str {
        let at = self.text.rfind(['<', '>', '=']).map_or(0, |at| at + 1);
        self.text.get(at..).unwrap_or("").trim()
    }

    fn is_of(&self, question: &Question) -> bool {
        self.report.as_deref().is_none_or(|report| report == question.name)
    }

    fn find_metric(&self, question: &Question) -> Option<usize> {
        let named = |metric: &Metric| metric.name == self.metric || metric.short == self.metric;
        question.metrics.iter().position(named)
    }

    /// Whether the condition applies to a row.
    fn looks_at(&self, row: &DiffRow, diff: &Diff) -> bool {
        let Some(reason) = &self.reason else {
            return self.find_metric(diff.question) == Some(row.metric);
        };
        let is_all = row.key.iter().all(|value| *value == KeyValue::None);
        let named = |value: &KeyValue| matches!(value, KeyValue::Text(text) if text.eq_ignore_ascii_case(reason));
        self.find_metric(diff.question) == Some(row.metric)
            && (row.key.iter().any(named) || (is_all && reason == "all"))
    }

    /// Whether a row is beyond the limit; `None` without values.
    fn is_beyond(&self, row: &DiffRow, unit: Unit) -> Option<bool> {
        self.is_beyond_of((row.a.value, row.b.value?), unit)
    }

    /// Whether two values are beyond the limit; `is_time` means nanoseconds. `None` if that contradicts the
    /// limit's unit.
    #[must_use]
    pub fn is_beyond_values(&self, (a, b): (f64, f64), is_time: bool) -> Option<bool> {
        self.is_beyond_of((Some(a), b), if is_time { Unit::Time } else { Unit::Times })
    }

    fn is_beyond_of(&self, (a, b): (Option<f64>, f64), unit: Unit) -> Option<bool> {
        let scaled = |limit: f64, is_time: bool| match unit {
            Unit::Time | Unit::TimePerSecond if !is_time => None,
            Unit::Time | Unit::TimePerSecond => Some(limit),
            _ => (!is_time).then_some(limit),
        };
        let (number, limit) = match self.limit {
            Limit::Value(limit, is_time) => (b, scaled(limit, is_time)?),
            Limit::Change(limit, is_time) => (b - a?, scaled(limit, is_time)?),
            Limit::Ratio(limit) => match a? {
                // A change from zero exceeds any ratio.
                0.0 if b > 0.0 => (f64::INFINITY, limit),
                0.0 => (1.0, limit),
                a => (b / a, limit),
            },
        };
        let beyond = if self.above { number > limit } else { number < limit };
        Some(beyond || (self.or_equal && number == limit))
    }

    /// Whether the condition applies to a change, so that significance matters, or to a value.
    #[must_use]
    pub const fn is_on_change(&self) -> bool {
        !matches!(self.limit, Limit::Value(..))
    }
}

fn metric_names(question: &Question) -> String {
    question.metrics.iter().map(|metric| metric.short).collect::<Vec<_>>().join(", ")
}

/// Report, reason, and position of the metric. Reasons can contain dots, metrics cannot.
fn split_name(name: &str) -> (Option<&str>, Option<&str>, usize) {
    let report = name.split_once('.').map(|(report, _)| report.trim());
    let report = report.filter(|report| !report.contains(':'));
    let rest_at = report.and_then(|_| name.find('.')).map_or(0, |dot| dot + 1);
    let rest = name.get(rest_at..).unwrap_or("");
    let reason = rest.rsplit_once(':').map(|(reason, _)| reason.trim());
    let metric_at = rest_at + reason.and_then(|_| rest.rfind(':')).map_or(0, |colon| colon + 1);
    let metric = name.get(metric_at..).unwrap_or("");
    (report, reason, metric_at + (metric.len() - metric.trim_start().len()))
}

/// Parses the limit; on an error, returns its position and an explanation.
fn limit_of(text: &str) -> Result<Limit, (usize, &'static str)> {
    const WANTED: &str = "invalid limit: write a number such as +10%, 1.2x, +5us or 300";
    let digits_from = text.len() - text.trim_start_matches(['+', '-']).len();
    if digits_from > 1 {
        return Err((1, WANTED));
    }
    let is_digit = |c: char| c.is_ascii_digit() || c == '.';
    let digits = text.get(digits_from..).unwrap_or("");
    let unit_at = digits_from + digits.find(|c| !is_digit(c)).unwrap_or(digits.len());
    let number = text.get(digits_from..unit_at).and_then(|digits| digits.parse::<f64>().ok());
    let number = number.filter(|number| number.is_finite()).ok_or((digits_from, WANTED))?;
    let signed = if text.starts_with('-') { -number } else { number };
    let change = digits_from == 1;
    let time = |ns: f64| {
        if change { Limit::Change(signed * ns, true) } else { Limit::Value(number * ns, true) }
    };
    match text.get(unit_at..).unwrap_or("").trim() {
        "%" => Ok(Limit::Ratio(1.0 + signed / 100.0)),
        "x" if change => Err((0, "a ratio takes no sign: write 1.2x, or +20%")),
        "x" => Ok(Limit::Ratio(number)),
        "ns" => Ok(time(1.0)),
        "us" => Ok(time(1e3)),
        "ms" => Ok(time(1e6)),
        "s" => Ok(time(1e9)),
        "" if change => Ok(Limit::Change(signed, false)),
        "" => Ok(Limit::Value(number, false)),
        _ => Err((unit_at, "unknown unit: use %, x, ns, us, ms or s")),
    }
}

/// Evaluates conditions. A change must be beyond the limit and also significant, after Holm's correction over all
/// rows that conditions apply to. `by_estimate` skips the significance test.
#[must_use]
pub fn judge<'d>(
    diff: &'d Diff,
    conditions: &'d [Condition],
    by_estimate: bool,
) -> Vec<Judged<'d>> {
    let looked_at: Vec<usize> = (0..diff.rows.len())
        .filter(|at| {
            let row = diff.rows.get(*at);
            row.is_some_and(|row| {
                row.p.is_some() && conditions.iter().any(|condition| condition.looks_at(row, diff))
            })
        })
        .collect();
    let p: Vec<f64> =
        looked_at.iter().filter_map(|at| diff.rows.get(*at).and_then(|row| row.p)).collect();
    let adjusted = stats::holm(&p);
    let adjusted_of = |at: usize| {
        let place = looked_at.binary_search(&at).ok()?;
        adjusted.get(place).copied()
    };
    let alpha = diff.options.alpha;
    conditions
        .iter()
        .map(|condition| {
            let mut judged = Judged { condition, rows: 0, beyond: 0, holds: Vec::new() };
            for (at, row) in diff.rows.iter().enumerate() {
                let Some(metric) = diff.question.metrics.get(row.metric) else { continue };
                if !condition.looks_at(row, diff) {
                    continue;
                }
                let Some(beyond) = condition.is_beyond(row, metric.unit) else { continue };
                judged.rows += 1;
                judged.beyond += usize::from(beyond);
                let p = adjusted_of(at);
                let sure = by_estimate
                    || !condition.is_on_change()
                    || (p.is_some_and(|p| p <= alpha) && row.not_contradicted(alpha));
                if beyond && sure {
                    judged.holds.push(MatchingRow { row, p });
                }
            }
            judged
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read() {
        let read = |text: &str| Condition::parse(text).unwrap();
        let full = read("exits.npf:p99 >= +10%");
        assert_eq!((full.report.as_deref(), full.reason.as_deref()), (Some("exits"), Some("npf")));
        assert_eq!((full.metric.as_str(), full.above, full.or_equal), ("p99", true, true));
        assert_eq!(full.limit, Limit::Ratio(1.1));
        assert_eq!(read("time<0.5x").limit, Limit::Ratio(0.5));
        assert_eq!(read("p99 > +5us").limit, Limit::Change(5e3, true));
        assert_eq!(read("mean_ns < -1.5 ms").limit, Limit::Change(-1.5e6, true));
        assert_eq!(read("p50 > 2s").limit, Limit::Value(2e9, true));
        assert_eq!(read("count > 300").limit, Limit::Value(300.0, false));
        assert_eq!(read("nested.factor > +1").limit, Limit::Change(1.0, false));
    }

    #[test]
    fn what_is_wrong_is_pointed_at() {
        let cases = [
            ("exits.p99", 9, "operator"),
            ("exits.p98 > 1%", 6, "no metric \"p98\": count, "),
            ("exists.p99 > 1%", 0, "unknown report \"exists\""),
            ("npf:p98 > 1%", 4, "no metric"),
            ("p99 = 1%", 4, "operator"),
            ("p99 > ten%", 6, "invalid limit: write a number"),
            ("p99 > +10q", 9, "unit"),
            ("p99 > +1.1x", 6, "takes no sign"),
            ("p99 > +-1%", 7, "invalid limit: write a number"),
            ("p99 >", 5, "invalid limit: write a number"),
            ("", 0, "operator"),
        ];
        for (text, at, words) in cases {
            let error = Condition::parse(text).unwrap_err();
            assert_eq!(error.at, at, "{error}");
            assert!(error.what.contains(words), "{error}");
        }
        let questions = QUESTIONS.iter().find(|question| question.name == "exits").unwrap();
        for (text, at, words) in [
            ("p99 > +10", 6, "p99 is a time, but +10 has no unit: write +10us or +10ms, or +10%"),
            ("npf:mean >= 300 ", 12, "300us"),
            ("count > +5us", 8, "count is not a time"),
        ] {
            let error = Condition::parse(text).unwrap().check_for(questions).unwrap_err();
            assert_eq!(error.at, at, "{error}");
            assert!(error.what.contains(words), "{error}");
        }
        for fits in ["p99 > +10us", "p99 > +10%", "count > +10", "count > 1.5x", "time < 2s"] {
            assert_eq!(Condition::parse(fits).unwrap().check_for(questions), Ok(()), "{fits}");
        }
        let shown = Condition::parse("p99 > +10q").unwrap_err().to_string();
        assert!(shown.ends_with("\n  p99 > +10q\n           ^"), "{shown}");
    }
}
