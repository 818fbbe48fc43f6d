//! How busy this system is with other work.

use std::fs;

/// Processes that run or wait to, averaged over a minute; 0 where the system doesn't tell.
pub(crate) fn average() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|load| load.parse().ok()).unwrap_or(0.0)
}
