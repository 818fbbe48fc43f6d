//! The trace.dat container, versions 6 and 7: the output of `trace-cmd record`.
//!
//! [`TraceDat::parse`] reads a file's metadata and the positions of each CPU's trace pages. It
//! stores no file content, so the caller decides between a mapping and memory, and passes the file
//! again for further reads: [`Section::read`] for kallsyms and similar sections,
//! [`CpuData::chunks`] and [`ChunkReader`] for pages. [`Correction`] converts recorded times to one
//! clock. [`TraceDatWriter`] writes files that trace-cmd can read.
//!
//! The crate interprets neither pages (see `ftrace::ringbuf`) nor event formats (see
//! `ftrace::eventfmt`).
//!
//! Input is not trusted. Numbers in a file are checked against the available bytes before use;
//! damage is reported in [`TraceDat::damage`], and the rest is read.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let file = std::fs::read("trace.dat")?;
//! let recording = tracedat::TraceDat::parse(&file)?;
//! let mut reader = tracedat::ChunkReader::new();
//! for buffer in &recording.buffers {
//!     for cpu in &buffer.cpus {
//!         for chunk in &cpu.chunks(&file).list {
//!             let pages = reader.read(&file, chunk)?;
//!             println!("CPU {}: {} bytes of pages", cpu.cpu, pages.len());
//!         }
//!     }
//! }
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![deny(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod buffers;
mod chunks;
mod clock;
mod cmdlines;
mod compression;
mod cpustat;
mod error;
mod formats;
mod header;
mod metadata;
pub mod option;
mod options;
mod output_room;
mod parse;
mod peers;
mod recording;
mod section;
mod time_shift;
mod tracing_data;
mod v6;
mod v7;
mod writer;
mod zstandard;
#[cfg(feature = "zstd")]
mod zstd_bound;

pub use buffers::{Buffer, CpuData, DataRange};
pub use chunks::{Chunk, ChunkReader, Chunks};
pub use clock::{Align, ClockPiece, ClockPieces, Correction, TimeUnit};
pub use cmdlines::Cmdlines;
pub use compression::Compression;
pub use cpustat::CpuStat;
pub use error::TraceDatError;
pub use formats::{EventFormat, Formats};
pub use header::{Header, Version};
pub use metadata::Metadata;
pub use options::{RawOption, id};
pub use peers::{Guest, GuestCpu, Tsc2Nsec};
pub use raw_bytes::Damage;
pub use recording::TraceDat;
pub use section::Section;
pub use time_shift::{ShiftSample, TimeShift};
pub use tracing_data::TracingData;
pub use writer::{BufferSpec, Contents, TraceDatWriter};
