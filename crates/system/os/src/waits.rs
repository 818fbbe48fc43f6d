//! Bounded waits: they end by a fixed deadline, or by a signal.

mod deadline;
mod signal;
mod wait;

pub use deadline::Deadline;
pub use signal::Signal;
pub use wait::Wait;
