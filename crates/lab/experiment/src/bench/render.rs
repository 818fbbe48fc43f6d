//! How numbers of measurements are written in tables.

use report::Table;
use stats::Estimate;

/// For what was not measured.
pub(crate) const NONE: &str = "–";

/// A table, as wide as there is room, and which of its columns had none.
pub(crate) fn draw(table: &Table, width: Option<usize>) -> String {
    let (mut text, left_out) = table.draw(width);
    if !left_out.is_empty() {
        text.push_str(&format!("(omitted for lack of space: {})\n", left_out.join(", ")));
    }
    text.push('\n');
    text
}

/// With this many decimals.
pub(crate) fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or(NONE.to_owned(), |value| format!("{value:.digits$}"))
}

/// A mean and its 95% interval, where there is one.
pub(crate) fn interval(estimate: Option<Estimate>, write: impl Fn(f64) -> String) -> String {
    let Some(Estimate { mean, low, high, .. }) = estimate else { return NONE.to_owned() };
    match (low, high) {
        (Some(low), Some(high)) => format!("{} [{}, {}]", write(mean), write(low), write(high)),
        _ => write(mean),
    }
}

/// The same with this many decimals.
pub(crate) fn estimate(estimate: Option<Estimate>, digits: usize) -> String {
    interval(estimate, |value| format!("{value:.digits$}"))
}

/// As CSV has it: in full, and empty for what was not measured.
pub(crate) fn plain(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}
