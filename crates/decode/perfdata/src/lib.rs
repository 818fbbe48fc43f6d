//! The perf.data container: the output of `perf record` to a file or a pipe.
//!
//! [`PerfData::parse`] reads a file's metadata: its events ([`Events`]), the position of its
//! records, and its features ([`Features`]: host name, tracepoint formats, build ids).
//! [`PerfData::records`] iterates over the records; a [`Sample`] has the recorded fields of an
//! event, and other records are variants of [`Body`]. [`PerfData::unpacked`] decompresses the
//! records of `perf record -z`. Both byte orders are supported.
//!
//! The crate does not interpret raw tracepoint data (see `ftrace::eventfmt`), and delivers CPU
//! modes as they are in the file.
//!
//! Input is not trusted. Numbers in a file are checked against the available bytes before use, and
//! do not decide how much memory is allocated. Damage is reported in [`PerfData::damage`], or by
//! the iterator that finds it after the preceding content.
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
//! Sources: `include/uapi/linux/perf_event.h` (attributes, kernel records),
//! `tools/perf/Documentation/perf.data-file-format.txt` (header, sections, features, perf's
//! records).

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
