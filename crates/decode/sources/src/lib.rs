//! Reads every kind of input as a [`Recording`] of one machine.
//!
//! A recording has event formats, a clock, and streams (one per CPU and buffer). It delivers blocks
//! of records in time order; `timeline` interprets the records. A trace.dat's records are on
//! ring-buffer pages, which are read in place; other inputs deliver them in lists
//! (`records::RecordSource`).

#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![deny(clippy::indexing_slicing)]

mod clock;
mod collected;
mod container;
mod ctf;
mod damage;
mod enabled;
mod ending;
mod format_table;
mod identifier;
mod names;
mod open;
mod open_error;
mod part;
mod perf_data;
mod raw_pages;
mod readable;
mod recording;
mod records;
mod samples;
mod session_member;
mod stream;
mod text;
mod texts;
mod trace_dat;
mod unpacked;

pub use crate::collected::Collected;
pub use clock::Clock;
pub use damage::{Damage, Damages};
pub use ending::{Doubt, Ending, KernelCount};
pub use format_table::FormatTable;
pub use open::{is_ctf, open, open_bytes, open_each};
pub use open_error::{OpenError, OpenFault};
pub use part::TimeRange;
pub use perf_data::SampleCounts;
pub use perfdata::CpuMode;
pub use readable::{CutFile, NothingReadable};
pub use recording::{BufferInfo, Recording, RecordingInfo, Tracer};
pub use records::Packet;
pub use samples::{SampleAt, SampledCode, Samples, WeighedSample, WeightUnit, kernel_code_file};
pub use session_member::guest_named;
pub use stream::{Block, BlockReader, PageBlock, Stream};
pub use text::{TEXT_REASON, TEXT_REASON_WAITS, X86_VECTORS};
pub use texts::Texts;
pub use tracedat::{ClockPiece, ClockPieces, Guest, TimeShift};
