//! The perf.data container: header, attributes of events, records and samples.
//!
//! From `tools/perf/Documentation/perf.data-file-format.txt` and `include/uapi/linux/perf_event.h`. Files and
//! what `perf record -o -` writes to a pipe, in both byte orders; also files whose recorder was killed, whose
//! header says that there are no data. No number of a file is believed before the bytes that it counts
//! are there. Records that perf compressed (`perf record -z`) are counted, not unpacked.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let file = std::fs::read("perf.data")?;
//! let perf = perfdata::PerfData::parse(&file)?;
//! for record in perf.records(&file) {
//!     if let Some(sample) = perf.sample(&record) {
//!         println!("{:?} on CPU {:?}", sample.time_ns, sample.cpu);
//!     }
//! }
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

mod attr;
mod features;
mod file;
mod records;
mod sample;

pub use attr::{EventAttr, EventType};
pub use features::Features;
pub use file::{PerfData, PerfDataError};
pub use records::{Record, RecordKind, Records};
pub use sample::{CpuMode, Sample, SampleId};
