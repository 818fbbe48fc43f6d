//! Measures in the lab what recording costs, and what exits do.
//!
//! One folder per topic: `channels`, the cost of recording a guest over each channel; `advice`, whether suggestions
//! save what they predict; `exits`, the cost of each kind of exit at each level; `tracers`, the cost of each tracer for
//! a program, split into parts.

#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod advice;
pub mod channels;
mod device;
mod error;
pub mod exits;
pub(crate) mod machines;
mod render;
pub(crate) mod restarting_lab;
mod shape;
mod surroundings;
pub mod tracers;
mod variant;

pub use error::{BenchError, Result};
pub use labguest::exitcost::{ExitCounts, ExitSource, Kind as ExitKind, Toggle};
pub use shape::up_options;
pub use stats::Estimate;
pub use surroundings::Surroundings;
