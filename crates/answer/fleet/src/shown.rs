//! Formats the numbers of a fleet for tables.

use report::{count, time};

use crate::metric::Metric;

/// A host's number.
pub(crate) fn value(metric: Metric, value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if metric.is_time() => time(value.round() as u64, true),
        Some(value) if value < 100.0 => format!("{value:.3}"),
        Some(value) => count(value.round() as u64),
    }
}

pub(crate) fn times(ratio: f64) -> String {
    format!("{ratio:.3}x")
}

/// The interval of a ratio.
pub(crate) fn interval(low: f64, high: f64) -> String {
    format!("{} … {}", times(low), times(high))
}

/// A p-value.
pub(crate) fn chance(p: f64) -> String {
    if p < 0.001 { format!("{p:.0e}") } else { format!("{p:.3}") }
}

/// A level of exits; 0: all.
pub(crate) fn level(level: i32) -> String {
    if level == 0 { "all".to_owned() } else { level.to_string() }
}

/// Max names of hosts in a line of text.
const MAX_NAMES: usize = 12;

/// Names of hosts, as many as fit in a line.
pub(crate) fn names(hosts: &[String]) -> String {
    let names: Vec<_> = hosts.iter().take(MAX_NAMES).map(|host| printable::line(host)).collect();
    match hosts.len().saturating_sub(MAX_NAMES) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}
