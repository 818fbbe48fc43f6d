//! Formats the numbers of measurements in tables.

use report::Table;
use stats::Estimate;

/// Shown for a missing measurement.
pub(crate) const NONE: &str = "–";

/// A table of at most this width, and the omitted columns.
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

/// A mean and its interval, with this many decimals.
pub(crate) fn estimate(estimate: Option<Estimate>, digits: usize) -> String {
    interval(estimate, |value| format!("{value:.digits$}"))
}

/// A number for CSV: with all digits, and empty if not measured.
pub(crate) fn plain(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}
