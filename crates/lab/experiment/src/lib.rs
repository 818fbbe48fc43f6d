//! Runs a workload under two configurations, in blocks of one run of each whose order is chance's, and reads
//! its numbers: how long it took, and what it says of itself.

#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod command;
mod experiment;
mod metric;

pub use command::{CommandError, Group, Limits, MOST_OUTPUT};
pub use experiment::{Configuration, Experiment, ExperimentError, Progress, Stop, run};
pub use metric::{Metric, MetricError};
