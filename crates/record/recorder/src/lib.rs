//! Records the kernel's trace of a KVM host into a session.
//!
//! A recording has an instance of tracefs of its own: what others trace continues, and nothing of it
//! is left when it ends. Pages go from the kernel's buffers to files without being looked at.
//!
//! **Host.** `instance` and `probes` remove what they made when they are dropped. `pump` polls until the kernel's buffer is half full
//! or a flush is due, and moves pages to `host.pages/cpuN`, next to the texts that make them readable (`pages_folder`); `flusher` writes
//! them to disk. At the end `assemble` makes a trace.dat. Until then the folder itself is a readable recording, also after a
//! crash: a guard process that `cli` starts empties the buffers into it when the recorder is killed, and the next recorder does so
//! if the guard was killed too (`clean_up`). A lock on a file in `/run/hyperscope` says who owns an instance and whether that process
//! lives. All files of a session are made through `SessionFolder`, relative to the descriptor of a checked folder.
//!
//! **Guests** (`guest`). A `GuestRecording` has the pages and texts of a guest, and an `Agent` that sends them: `hyperscope_agent` or
//! `trace_cmd`, which differ in their protocol alone. One thread speaks with the agent, one thread per page stream receives pages, and
//! `files` alone knows what a guest may send. A guest is never trusted: what it sends is bounded on arrival, and what is missing is
//! marked in the pages. Everything that a guest can delay waits for a `Deadline` that was fixed when the wait began. Guests that are not
//! up yet, and those of a flight recorder, which come and go, are waited for by `pending_guests`.
//!
//! ```text
//! guest: tracefs ─▶ agent ─▶ channel ══╗   wire: HSCM messages, HSPG page heads
//! host:  tracefs ─▶ recorder ◀─ channel ╝  ▶ NAME.hscope/{host,guest-NAME}.dat
//! ```
//!
//! **Flight recorder** (`flight`). A roller per CPU takes the pump's place: pages go to segments, which `rolling` begins and removes. A
//! dump makes a session of the existing segments in a thread of its own. `cut_pages` alone looks at pages, to find where a session
//! begins and ends. Other programs reach it through `control`'s socket.

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
