//! Waits that end: by a deadline that does not move, or by a signal.

mod deadline;
mod signal;
mod wait;

pub use deadline::Deadline;
pub use signal::Signal;
pub use wait::Wait;
