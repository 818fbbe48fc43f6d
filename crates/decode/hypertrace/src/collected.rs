//! The file that the BPF collector writes next to a host's recording: entries to bytes and back, and times of
//! its clock to those of the recording. `docs/formats/collected.md` has the bytes.
//!
//! Each entry has a checksum of its own: a reader leaves a damaged one out and finds those after it.

mod clock;
mod entry;
mod fields;
mod hypercall;
mod reader;

pub use clock::Conversion;
pub use entry::{Begin, ClockPair, Counts, Entry, VERSION};
pub use hypercall::{HEAD_BYTES, Hypercall, MAX_WORDS, Words};
pub use reader::Entries;
