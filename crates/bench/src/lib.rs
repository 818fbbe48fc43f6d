//! What recording costs, and what exits do, measured in the lab.
//!
//! One folder for each thing that is measured: `channels`, what recording a guest costs over each channel;
//! `exits`, what each kind of exit costs at each level.

#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod channels;
mod device;
mod error;
pub mod exits;
mod load;
mod machines;

pub use error::{BenchError, Result};
pub use exitcost::{Kind as ExitKind, Toggle, Way};
pub use stats::Estimate;
