//! What the BPF collector writes beside a host's recording: entries to bytes and back, and times of
//! its clock to those of the recording. `docs/formats/collected.md` has the bytes.
//!
//! Each entry has a sum of its own, so that one that was damaged is left out, and those behind it
//! are found again. No IO.

#![forbid(unsafe_code)]
#![deny(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

mod clock;
mod entry;
mod fields;
mod hypercall;
mod reader;

pub use clock::Conversion;
pub use entry::{Begin, ClockPair, Counts, Entry, VERSION};
pub use hypercall::{HEAD_BYTES, Hypercall, MOST_WORDS, Words};
pub use reader::Entries;
