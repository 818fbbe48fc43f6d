//! The file that the BPF collector writes next to a host's recording: encodes and decodes its
//! entries, and converts times of its clock to those of the recording. `docs/formats/collected.md`
//! has the byte layout.
//!
//! Each entry has a checksum of its own: a reader skips a damaged entry and finds the next one.

mod clock;
mod entry;
mod fields;
mod hypercall;
mod reader;

pub use clock::Conversion;
pub use entry::{Begin, ClockPair, Counts, Entry, VERSION};
pub use hypercall::{HEAD_BYTES, Hypercall, MAX_WORDS, Words};
pub use reader::Entries;
