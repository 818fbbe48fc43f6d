//! The flight recorder: keeps the newest minute of a host's events until a session is requested.
//!
//! Pages go to segments: a file per CPU and interval (`rolling`). All CPUs start a new segment together. The
//! oldest generation is removed once the later ones cover the requested time, or all of them reach the max size. A dump
//! closes the current generation and opens the files of all generations. A thread then assembles a session from these,
//! while tracing and rolling continue: dumps may overlap, and a failed dump loses nothing.
//!
//! ```text
//! kernel's buffers ─▶ roller of each CPU ─▶ host.pages/cpuN.NUMBER ─▶ dump ─▶ flight-TIME.hscope/
//!                                           (the oldest are removed)   (edges cut, losses counted)
//! ```
//!
//! CPUs roll within milliseconds of each other, not at once. At either end of a dump, the events between the first and
//! the last CPU's roll are cut off (`cut_pages`): if a session began at another time on each CPU, migrating threads
//! would appear on wrong CPUs.

mod control;
mod dump;
mod recorder;
mod task_names;

pub use session_json::{FlightSummary, Trigger, TriggerKind};

pub use crate::flight_plan::{Ask, DumpReply, FlightEvent, FlightPlan};

pub use self::control::{Control, answer_of, ask, running};
pub use self::dump::{DumpJob, Dumped};
pub use self::recorder::Flight;

#[must_use]
pub fn trigger_now(kind: TriggerKind, text: Option<String>) -> Trigger {
    Trigger { kind, text, unix_ns: crate::nanoseconds::unix_ns(), vm: None }
}
