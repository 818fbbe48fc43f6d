//! Compares the hosts of one part of a lake with those of another, or with themselves at an earlier time.
//!
//! The unit is the host: exits of one host are similar, so thousands of them are hardly more evidence about a
//! fleet than a few. Sums of exits become one value per host and side ([`sums`]), and values are compared across
//! hosts ([`compare`]). `docs/fleet.md` describes the comparisons and their error rates.

#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing, clippy::print_stdout, clippy::print_stderr)]
#![allow(clippy::cast_precision_loss, reason = "sums of nanoseconds are compared to a few digits")]

mod carriers;
mod change_points;
mod compare;
mod day_levels;
mod diff;
mod diff_report;
mod fact;
mod findings;
mod host_days;
pub mod lake;
mod level_change;
mod metric;
mod outliers;
mod page;
mod rows;
#[cfg(test)]
mod schemas;
mod selection;
mod series;
mod sessions;
mod shared_facts;
mod shown;
mod simulate;
mod since;
mod since_findings;
mod since_report;
mod sums;
mod totals;

pub use change_points::{ChangePoint, change_points};
pub use compare::{Change, Design, HostValues, compare};
pub use diff::{FleetDiff, Question, SideFacts, fleet_diff};
pub use diff_report::FleetReport;
pub use level_change::LevelChange;
pub use metric::Metric;
pub use page::FleetPage;
pub use rows::{HostRatio, Row};
pub use selection::{Selection, SelectionError};
pub use shared_facts::{CameWith, SharedFact};
pub use simulate::{Effect, Simulation, Template};
pub use since::{FleetSince, SinceQuestion, fleet_since};
pub use since_report::SinceReport;
