//! Rows of a comparison as text: their metrics, their groups, and the result of a condition.

use analyses::diff::{Condition, Diff, DiffRow, KeyValue, MatchingRow, Metric, Unit};

use super::numbers::{change, number, p_value};

pub(super) fn metric_of<'d>(diff: &'d Diff, row: &DiffRow) -> Option<&'d Metric> {
    diff.question.metrics.get(row.metric)
}

/// The metric's name, with the unit of its times.
pub(super) fn metric_name(diff: &Diff, metric: &Metric) -> String {
    if diff.nanoseconds { metric.name.to_owned() } else { metric.name.replace("_ns", "_cycles") }
}

/// The group of a row as text: `vm-148 L1 npf`.
pub(super) fn group_name(diff: &Diff, row: &DiffRow) -> String {
    let words = diff.question.columns.iter().zip(row.key.iter()).filter_map(|(column, value)| {
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

/// The result of a condition, in a line: the row, both values, the change and its significance.
#[must_use]
pub fn verdict(diff: &Diff, condition: &Condition, found: &MatchingRow<'_>) -> String {
    let p = found.p.map_or_else(String::new, |p| format!(", p {}", p_value(p)));
    format!("{}: {}{p}", condition.text, went(diff, found.row))
}

/// What a metric was on both sides, in words.
pub(super) fn went(diff: &Diff, row: &DiffRow) -> String {
    let unit = metric_of(diff, row).map_or(Unit::Times, |metric| metric.unit);
    let name = metric_of(diff, row).map_or_else(String::new, |metric| metric_name(diff, metric));
    let shown = |value: Option<f64>| {
        value.map_or_else(|| "-".into(), |v| number(v, unit, diff.nanoseconds))
    };
    format!(
        "{} {name} went from {} to {}{}",
        group_name(diff, row),
        shown(row.a.value),
        shown(row.b.value),
        change(row, unit, diff.nanoseconds)
            .map_or_else(String::new, |change| format!(" ({change})")),
    )
}
