//! How a guest's clock relates to its host's, from the trace alone.
//!
//! A guest event on a vCPU happened while that vCPU ran its guest: between a `kvm_entry` and the
//! `kvm_exit` after it. So each event rules out the offsets that would put it elsewhere, and what
//! all events leave is where the offset lies: a bound, not a best fit.
//!
//! ```text
//!  host     away ████      ███████    ██████  away
//!  guest           | ||  |        ||         |||        at the right offset
//!  guest        | ||  |        ||         |||           80 us earlier: impossible
//! ```
//!
//! `search` finds the offset with nothing known of it, [`solve`] follows it through time as a
//! line with a drift, and finds where it breaks.

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
