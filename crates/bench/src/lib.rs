//! What recording costs, and what exits do, measured in the lab.
//!
//! One folder for each thing that is measured: `channels`, what recording a guest costs over each channel.

#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod channels;
mod device;
mod error;
mod machines;

pub use error::{BenchError, Result};
pub use stats::Estimate;
