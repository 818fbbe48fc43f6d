//! Recordings as files for other tools: Perfetto, Chrome's trace viewer, the Firefox Profiler, trace-cmd and
//! KernelShark.
//!
//! The first three show *tracks*: the states of each vCPU, each task of a guest and each CPU over time, as
//! `analyses::states::states` finds them. [`Scene`] lists the tracks, [`write_timeline`] fills them span by
//! span, and one writer per format encodes them. Only the writer for the Firefox Profiler keeps spans in
//! memory, because that format stores one column after the other. [`TraceDatExport`] makes a trace.dat from
//! records as they were recorded.

#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing, clippy::print_stdout, clippy::print_stderr)]

mod calls;
mod chrome;
mod exit_rate;
mod firefox;
mod flows;
mod json;
mod perfetto;
mod raw_events;
mod readable_format;
mod repack;
mod scene;
mod timeline_writer;
mod trace_dat;
mod walk;
mod window;

pub use chrome::ChromeWriter;
pub use firefox::FirefoxWriter;
pub use flows::Flow;
pub use perfetto::PerfettoWriter;
pub use raw_events::RawEvent;
pub use scene::{Group, Role, Scene, Track};
pub use timeline_writer::{Arg, Args, Instant, Slice, TimelineWriter};
pub use trace_dat::{TraceDatExport, Written};
pub use walk::{Exported, Question, write_timeline};
pub use window::Window;
