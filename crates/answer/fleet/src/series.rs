//! A number over time, in which a change is looked for.

use crate::day_levels::DayLevels;
use crate::metric::Metric;
use crate::sums::Key;

/// A number over time, of all hosts or of those of one kind.
#[derive(Debug)]
pub(crate) struct Series {
    /// The column that tells kinds apart, and the kind; `None`: all hosts.
    pub(crate) stratum: Option<(String, String)>,
    pub(crate) key: Key,
    pub(crate) metric: Metric,
    pub(crate) levels: DayLevels,
}
