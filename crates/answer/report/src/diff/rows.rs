//! Rows of a comparison as JSON objects, as lines of a spreadsheet, and as words.

use analyses::diff::{Condition, Diff, DiffRow, KeyValue, MatchingRow, Metric, Scale, Unit};
use serde_json::{Value, json};

use super::table::{change, number};
use crate::json::Object;
use crate::table::Table;

/// The metric of a row.
pub(super) fn metric_of<'d>(diff: &'d Diff, row: &DiffRow) -> Option<&'d Metric> {
    diff.question.metrics.get(row.metric)
}

/// A property of the row's group.
fn key_json(diff: &Diff, value: &KeyValue) -> Value {
    match value {
        KeyValue::None => Value::Null,
        KeyValue::Vm(vm) => json!(diff.vms.get(*vm)),
        KeyValue::Number(number) => json!(number),
        KeyValue::Text(text) => json!(text),
    }
}

/// The metric's name, with the unit that its times have.
pub(super) fn metric_name(diff: &Diff, metric: &Metric) -> String {
    if diff.nanoseconds { metric.name.to_owned() } else { metric.name.replace("_ns", "_cycles") }
}

pub(super) fn row_json(diff: &Diff, row: &DiffRow) -> Value {
    let mut object = Object::default();
    for (column, value) in diff.question.columns.iter().zip(&row.key) {
        object.set(column, key_json(diff, value));
    }
    let scale = row.interval.map(|(scale, ..)| match scale {
        Scale::Ratio => "ratio",
        Scale::Difference => "difference",
    });
    // Times are whole numbers; ratios and intervals are made of what they were before.
    let is_time = metric_of(diff, row)
        .is_some_and(|metric| matches!(metric.unit, Unit::Time | Unit::TimePerSecond));
    let number = |value: Option<f64>| match value {
        Some(value) if is_time => json!(value.round() as u64),
        value => json!(value),
    };
    object
        .set("metric", metric_of(diff, row).map(|metric| metric_name(diff, metric)))
        .set("a", number(row.a.value))
        .set("b", number(row.b.value))
        .set("a_sd", number(row.a.sd))
        .set("b_sd", number(row.b.sd))
        .set("a_runs", row.a.runs)
        .set("b_runs", row.b.runs)
        .set("ratio", row.ratio)
        .set("interval_of", scale)
        .set("ci_low", row.interval.map(|(_, low, _)| low))
        .set("ci_high", row.interval.map(|(.., high)| high))
        .set("p_value", row.p)
        .set("p_adjusted", row.p_adjusted)
        .set("p_permutation", row.permutation.map(|test| test.p))
        .set("significant", row.significant);
    object.done()
}

pub(super) fn csv(diff: &Diff) -> Table {
    let rows: Vec<Value> = diff.rows.iter().map(|row| row_json(diff, row)).collect();
    let mut titles: Vec<&str> = diff.question.columns.to_vec();
    titles.extend([
        "metric",
        "a",
        "b",
        "a_sd",
        "b_sd",
        "a_runs",
        "b_runs",
        "ratio",
        "interval_of",
        "ci_low",
        "ci_high",
        "p_value",
        "p_adjusted",
        "p_permutation",
        "significant",
    ]);
    let mut table = Table::default();
    for title in titles {
        let cell = |row: &Value| match row.get(title) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        table.names(title, 0, rows.iter().map(cell).collect());
    }
    table
}

/// The group of a row in words: `vm-148 L1 npf`.
pub(super) fn group_name(diff: &Diff, row: &DiffRow) -> String {
    let words = diff.question.columns.iter().zip(&row.key).filter_map(|(column, value)| {
        Some(match (*column, value) {
            (_, KeyValue::None) | ("isa", _) => return None,
            ("level", KeyValue::Number(level)) => format!("L{level}"),
            (_, KeyValue::Vm(vm)) => diff.vms.get(*vm)?.clone(),
            (_, KeyValue::Number(number)) => number.to_string(),
            (_, KeyValue::Text(text)) => text.clone(),
        })
    });
    let words: Vec<String> = words.collect();
    if words.is_empty() { "all".to_owned() } else { words.join(" ") }
}

/// What a condition found, in a line: the row, both values, the change and how sure it is.
#[must_use]
pub fn verdict(diff: &Diff, condition: &Condition, found: &MatchingRow<'_>) -> String {
    let row = found.row;
    let unit = metric_of(diff, row).map_or(Unit::Times, |metric| metric.unit);
    let name = metric_of(diff, row).map_or_else(String::new, |metric| metric_name(diff, metric));
    let shown = |value: Option<f64>| {
        value.map_or_else(|| "-".into(), |v| number(v, unit, diff.nanoseconds))
    };
    let p = found.p.map_or_else(String::new, |p| format!(", p {}", super::table::p_value(p)));
    format!(
        "{}: {} {name} went from {} to {}{}{p}",
        condition.text,
        group_name(diff, row),
        shown(row.a.value),
        shown(row.b.value),
        change(row, unit, diff.nanoseconds)
            .map_or_else(String::new, |change| format!(" ({change})")),
    )
}
