//! What recording costs, and what exits do, measured in the lab.
//!
//! One folder for each thing that is measured: `channels`, what recording a guest costs over each channel;
//! `advice`, whether what is suggested saves what is predicted; `exits`, what each kind of exit costs at each level; `tracers`, what each tracer costs a program, by what
//! the cost is spent on.

#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod advice;
pub mod channels;
mod device;
mod error;
pub mod exits;
mod machines;
mod render;
mod restarting_lab;
mod shape;
mod surroundings;
pub mod tracers;
mod variant;

pub use error::{BenchError, Result};
pub use labguest::exitcost::{ExitCounts, ExitSource, Kind as ExitKind, Toggle};
pub use shape::up_options;
pub use stats::Estimate;
pub use surroundings::Surroundings;
