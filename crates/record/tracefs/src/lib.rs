//! The kernel's tracefs: instances, events, probes, clocks, counts and pages.
//!
//! The recorder on a host and the agent in a guest use it. An instance has buffers and settings of its own, so it does
//! not disturb other tracing; drop removes it. If an instance can't have a function tracer, the top-level buffers are
//! borrowed.

#![forbid(unsafe_code)]

mod clock;
mod error;
mod events;
mod in_use;
mod instance;
mod interference;
mod marks;
mod mounted;
mod owner;
mod probes;
mod raw_pages;
mod recorded_buffers;
mod stats;
mod texts;
mod top_level;
mod trace_clock;
mod trace_session;
mod tracer;
mod unix_pair;

pub use clock::{Clock, TscConversion};
pub use error::{Result, TracefsError, did_you_mean};
pub use events::{Available, FilteredEvent, Profile, similar};
pub use instance::{Instance, usual_buffer_kib};
pub use marks::{Mark, Marks};
pub use mounted::{Tracefs, append, folders, read, write};
pub use owner::{LeftOver, Owner, SessionNote, run_folder, run_folders_of_others};
pub use probes::Probes;
pub use raw_pages::{RawPages, Woken};
pub use recorded_buffers::RecordedBuffer;
pub use stats::{CpuStats, StatsFile};
pub use texts::{EventText, Texts, page_size};
pub use trace_clock::TraceClock;
pub use trace_session::{Interference, TraceRequest, TraceSession};
pub use tracer::FunctionTracer;
pub use unix_pair::UnixPair;
