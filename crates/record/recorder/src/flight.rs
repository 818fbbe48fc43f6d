//! The flight recorder: keeps the newest minute of a host's events until a session is requested.
//!
//! Pages go to segments: a file for each CPU and stretch of time ([`Generation`]). All CPUs begin a new
//! one together, and the oldest generation is removed once those after it are as long as what is to be
//! kept, or all of them are as large as they may be. A dump closes the generation that goes on, opens the
//! files of all of them, and has a thread put a session together from these, while tracing, and rolling,
//! goes on: so dumps may overlap, and one that fails has cost nothing.
//!
//! ```text
//! kernel's buffers ─▶ roller of each CPU ─▶ host.pages/cpuN.NUMBER ─▶ dump ─▶ flight-TIME.hscope/
//!                                           (the oldest are removed)   (edges cut, losses counted)
//! ```
//!
//! CPUs roll within milliseconds of each other, not at once. What lies between the first and the last of
//! them, at either end of a dump, is cut off its pages (`cut_pages`): a session that began at another time
//! for each CPU would show threads that move between them where they were not.

mod control;
mod dump;
mod generation;
mod growing;
mod recorder;
mod roller;
mod rolling;
mod task_names;

pub use session_json::{FlightSummary, Trigger, TriggerKind};

pub use crate::flight_plan::{Ask, DumpReply, FlightEvent, FlightPlan};

pub use self::control::{Control, answer_of, ask, running};
pub use self::dump::{DumpJob, Dumped};
pub use self::recorder::Flight;
pub(crate) use self::rolling::Rolling;

#[must_use]
pub fn trigger_now(kind: TriggerKind, text: Option<String>) -> Trigger {
    Trigger { kind, text, unix_ns: crate::nanoseconds::unix_ns(), vm: None }
}
