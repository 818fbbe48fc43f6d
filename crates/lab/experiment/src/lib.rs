//! Runs a workload under some configurations, in blocks of one run of each whose order is chance's, and reads
//! its numbers: how long it took, what it says of itself, and what else is counted meanwhile.

#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod bench;
mod command;
mod experiment;
mod metric;
mod watch;

pub use command::{CommandError, Group, Limits, MAX_OUTPUT};
pub use experiment::{
    Configuration, Experiment, ExperimentError, OWN_METRICS, Progress, RunPlace, Stop, run,
};
pub use metric::{Metric, MetricError};
pub use watch::{Count, RunOf, Unwatched, Watch};
