//! The flight recorder: the newest minute of a host's events, kept until somebody wants it.
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
//! them, at either end of a dump, is cut off its pages ([`edges`]): a session that began at another time
//! for each CPU would show threads that move between them where they were not.

mod begun;
mod control;
mod dump;
mod edges;
mod generation;
mod growing;
mod roller;
mod rolling;
mod sessions;
mod task_names;

use std::sync::mpsc::Sender;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

pub use self::begun::Flight;
pub use self::control::{Answer, Ask, Asked, Control, ask, running};
pub use self::dump::{DumpJob, Dumped};
pub(crate) use self::edges::CutPages;
pub(crate) use self::generation::file as segment_file;
pub(crate) use self::rolling::Rolling;
pub(crate) use self::sessions::name as left_name;

/// What is kept, and where it goes when it is wanted.
#[derive(Clone, Debug)]
pub struct FlightPlan {
    /// At least so much of the newest time.
    pub window: Duration,
    /// Bytes of pages that are kept at most: less time where more comes.
    pub most_bytes: u64,
    /// Sessions that are there at most: a new one takes the place of the oldest.
    pub most_sessions: u32,
    /// Bytes of all sessions, at most.
    pub most_session_bytes: u64,
    /// Is sent to when there is something to do for whoever calls [`Flight::tick`].
    pub asked: Sender<Asked>,
}

impl FlightPlan {
    /// Size of each CPU's buffer in the kernel, when nobody says otherwise: all of them hold no more than a
    /// part of what is kept, since they are emptied when they are half full.
    pub(crate) fn buffer_kib(&self) -> u64 {
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let part_kib = (self.most_bytes / 8 / cpus as u64) >> 10;
        part_kib.max(LEAST_BUFFER_KIB).min(tracefs::usual_buffer_kib(cpus))
    }
}

/// A buffer is at least so large: a thread that empties it may have to wait for a CPU.
const LEAST_BUFFER_KIB: u64 = 1 << 10;

/// Why a session is dumped.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Trigger {
    /// What kind of thing it was.
    pub kind: TriggerKind,
    /// What it says of itself: the condition, the alert's name, what a person wrote.
    pub text: Option<String>,
    /// When, in Unix time.
    pub unix_ns: u64,
    /// The VM that it is about, where it is about one; `text` has it in words.
    #[serde(skip)]
    pub vm: Option<String>,
}

/// Kinds of triggers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TriggerKind {
    /// SIGUSR1.
    Signal,
    /// `hyperscope flight dump`.
    Command,
    /// A condition on live figures.
    Condition,
    /// An alert's webhook.
    Alert,
}

impl Trigger {
    /// One of now.
    #[must_use]
    pub fn now(kind: TriggerKind, text: Option<String>) -> Self {
        Self { kind, text, unix_ns: crate::recording::unix_ns(), vm: None }
    }
}

/// What a dumped session says of how it came about: `recorded.flight` of `session.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FlightSummary {
    /// What was to be kept.
    pub window_ns: u64,
    /// Less is there, since more came than was to be kept (`--size`), or the recorder began later.
    pub shorter: bool,
    /// Segments of each CPU that it was put together from.
    pub segments: u64,
    /// Events that were cut off at the edges, where not all CPUs had been recorded yet, or were no more.
    pub events_cut: u64,
    /// Bytes of pages that the disk had no room for while they were kept.
    pub unwritten_bytes: u64,
    /// Why it was dumped.
    pub trigger: Trigger,
}
