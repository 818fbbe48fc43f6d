//! Runs a workload under several configurations, in blocks of one run of each in random order, and reads its numbers:
//! its times, the metrics in its output, and other counts during the run.

#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod bench;
mod command;
pub mod corpus;
mod experiment;
mod metric;
mod watch;

pub use command::{CommandError, Group, Limits, MAX_OUTPUT};
pub use experiment::{
    Configuration, Experiment, ExperimentError, OWN_METRICS, Progress, RunPlace, Stop, run,
};
pub use metric::{Metric, MetricError};
pub use watch::{Count, RunOf, Unwatched, Watch};
