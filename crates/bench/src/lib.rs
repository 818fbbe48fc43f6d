//! What recording a guest costs over each channel, measured in the lab.
//!
//! Every *variant* is a way to record the guest, or to prepare for it. A turn of a variant is a pair of
//! runs of one workload, with and without it, right after one another and in an order left to chance.
//! What differs between the two runs of many pairs is what the variant costs.

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod arrived;
mod channels;
mod device;
mod error;
mod machines;
mod outcome;
mod plan;
mod recording;
mod render;
mod run;
mod summary;
mod sustained;
mod variant;

pub use channels::{Tell, description, manner, run};
pub use error::{BenchError, Result};
pub use outcome::{Attributed, Conditions, Outcome, Row, Sustained};
pub use plan::Plan;
pub use stats::Estimate;
pub use variant::Variant;
