//! The perf.data container: what `perf record` writes, as a file or into a pipe.
//!
//! [`PerfData::parse`] reads what a file says of itself: its events ([`Events`]), where its records are,
//! and its features ([`Features`]: host name, formats of tracepoints, build ids). [`PerfData::records`]
//! walks over the records; a [`Sample`] is what an event's occurrence recorded, any other record is one of
//! [`Body`]. Where `perf record -z` compressed records, [`PerfData::unpacked`] gives them as they were.
//! Byte order is the file's: either.
//!
//! What the raw bytes of a tracepoint say is not this crate's subject (see `ftrace::eventfmt`), nor whose time a
//! sample took: a cpumode is given as the file has it.
//!
//! Input is not trusted. No number in a file is believed before it was checked against the bytes that are
//! there, and no memory is taken by one; a damaged part is reported in [`PerfData::damage`], or by the
//! iterator that meets it, and what comes before it is given.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use perfdata::{Body, PerfData};
//!
//! let file = std::fs::read("perf.data")?;
//! let perf = PerfData::parse(&file)?;
//! for record in perf.records(&file).flatten() {
//!     if let Ok(Body::Sample(sample)) = perf.events.body(&record) {
//!         println!("{:?} on CPU {:?} at {:?}", sample.cpu_mode, sample.cpu, sample.time);
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Sources: `include/uapi/linux/perf_event.h` (attributes, records of the kernel),
//! `tools/perf/Documentation/perf.data-file-format.txt` (header, sections, features, records of perf's own).

#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![deny(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod attr;
mod body;
mod build_id;
mod cpu_mode;
mod error;
mod events;
mod features;
mod file_form;
mod header;
mod names;
mod parse;
mod pipe_form;
mod read_values;
mod records;
mod sample;
mod sample_id;
#[cfg(feature = "zstd")]
mod unpack;
mod words;
mod write;

pub use attr::{Attr, Flags, event_type, flag, read_format, sample_type};
pub use body::{
    Body, Comm, IdIndexEntries, IdIndexEntry, Ksymbol, Lost, Mapping, Switch, Task, Throttle,
    TimeConv,
};
pub use build_id::BuildId;
pub use cpu_mode::{CpuMode, ip_is_marker, marker};
pub use error::PerfDataError;
pub use events::{Event, Events};
pub use features::{ClockData, Features, feature};
pub use header::{Form, Range};
pub use parse::PerfData;
pub use raw_bytes::Damage;
pub use read_values::{Count, ReadValues};
pub use records::{Record, Records, kind, misc};
pub use sample::{Branch, BranchStack, Registers, Sample};
pub use sample_id::SampleId;
#[cfg(feature = "zstd")]
pub use unpack::{Place, Unpacked};
pub use words::Words;
pub use write::{CpuEvent, EarlierMapping, PipeWriter};
