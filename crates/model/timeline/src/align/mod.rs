//! The relation of a guest's clock to its host's, derived from the trace alone.
//!
//! A guest event on a vCPU happened while that vCPU ran its guest: between a `kvm_entry` and the
//! next `kvm_exit`. So each event rules out the offsets that would place it elsewhere, and the
//! offsets that remain after all events are a bound, not a best fit.
//!
//! ```text
//!  host     away ████      ███████    ██████  away
//!  guest           | ||  |        ||         |||        at the right offset
//!  guest        | ||  |        ||         |||           80 us earlier: impossible
//! ```
//!
//! `search` finds the offset without prior knowledge; [`solve`] follows it through time as a line
//! with a drift, and finds where the line breaks.

mod away;
mod budget;
mod lines;
mod piece;
mod search;
mod solve;

pub use away::Away;
pub use budget::Budget;
pub use piece::{Line, Piece};
pub use solve::{Unsolved, solve};
