//! Records the kernel's trace of a KVM host into a session.
//!
//! A recording has a tracefs instance of its own: it does not disturb other tracing, and nothing of it is left
//! afterwards. Pages go from the kernel's buffers to files unread.
//!
//! **Host.** `instance` and `probes` remove what they made when they are dropped. `pump` polls until the kernel's
//! buffer is half full or a flush is due, and moves pages to `host.pages/cpuN`, next to the texts that decode them
//! (`pages_folder`); `flusher` syncs them to disk. At the end `assemble` makes a trace.dat. Until then the folder
//! itself is a readable recording, also after a crash: a guard process that `cli` starts empties the buffers into it
//! when the recorder is killed, and the next recorder does so if the guard was killed too (`clean_up`). A locked file
//! in `/run/hyperscope` shows who owns an instance and whether that process lives. All files of a session are made
//! through `SessionFolder`, relative to the descriptor of a checked folder.
//!
//! **Guests** (`guest`). A `GuestRecording` has the pages and texts of a guest, and an `Agent` that sends them:
//! `hyperscope_agent` or `trace_cmd`, which differ only in their protocol. One thread exchanges messages with the
//! agent, one thread per page stream receives pages, and only `files` knows what a guest may send. A guest is never
//! trusted: its data is bounded on arrival, and losses are marked in the pages. Everything that a guest can delay waits
//! for a `Deadline` that was fixed when the wait began. `pending_guests` waits for guests that are not up yet, and for
//! those of a flight recorder, which come and go.
//!
//! ```text
//! guest: tracefs ─▶ agent ─▶ channel ══╗   wire: HSCM messages, HSPG page heads
//! host:  tracefs ─▶ recorder ◀─ channel ╝  ▶ NAME.hscope/{host,guest-NAME}.dat
//! ```
//!
//! **Flight recorder** (`flight`). A roller per CPU replaces the pump: pages go to segments, which `rolling` starts and
//! removes. A dump makes a session of the existing segments in a separate thread. Only `cut_pages` reads pages, to find
//! where a session begins and ends. Other programs send requests to the socket of `control`.

#![forbid(unsafe_code)]

mod assemble;
mod clean_up;
mod cut_pages;
mod ending;
mod error;
pub mod flight;
mod flight_plan;
mod flight_sessions;
mod flusher;
mod guest;
mod guests;
mod host_identity;
mod hypercalls;
mod hyperscope_agent;
mod in_guests;
mod listen;
mod losses;
mod module;
mod nanoseconds;
mod page_events;
mod pages_folder;
mod pending_guests;
mod plan;
mod pump;
mod quota;
mod recording;
mod relation;
mod rolling;
mod samples;
mod session;
mod session_folder;
mod session_number;
mod task;
mod trace_cmd;
mod tracer;

pub use clean_up::{Finished, clean_up, finish_left_overs};
pub use ending::{DEFAULT_GUEST_WAIT, Stop};
pub use error::{RecordError, Result};
pub use hypercalls::Hypercalls;
pub use in_guests::{DEFAULT_QUOTA_BYTES, InGuests};
pub use listen::{ListenEvent, ListenPlan, Listening};
pub use os::folder::{Modes, Observer, Operation};
pub use plan::{NESTED_WRITES, RecordPlan};
pub use recording::{Progress, Recording};
pub use sampler::SampledEvent;
pub use samples::Sampling;
pub use session::write as write_session;
pub use session_folder::SessionFolder;
pub use tracefs::{FunctionTracer, Profile};
