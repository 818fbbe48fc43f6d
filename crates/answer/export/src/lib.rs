//! Recordings as files that other tools open: Perfetto, Chrome's trace viewer, the Firefox Profiler,
//! trace-cmd and KernelShark.
//!
//! The first three show *tracks*: what every vCPU, every task of a guest and every CPU did when, as
//! `analyses::states::states` gives it. [`Scene`] says which tracks there are, [`write_timeline`] fills them
//! span by span, and a writer per format puts them into bytes; but for the Firefox Profiler, whose
//! format has a column after the other, nothing is kept in memory. A trace.dat is made of records as
//! they were recorded: [`TraceDatExport`].

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
