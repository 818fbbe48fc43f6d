//! A number over time, which is searched for changes.

use crate::day_levels::DayLevels;
use crate::metric::Metric;
use crate::sums::Key;

/// A number over time, for all hosts or for those of one kind.
#[derive(Debug)]
pub(crate) struct Series {
    /// The column that defines kinds, and the kind; `None`: all hosts.
    pub(crate) stratum: Option<(String, String)>,
    pub(crate) key: Key,
    pub(crate) metric: Metric,
    pub(crate) levels: DayLevels,
}
