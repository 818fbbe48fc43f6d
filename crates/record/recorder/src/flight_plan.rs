//! What a flight recorder keeps, and what it is asked for.

use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use session_json::Trigger;

/// A buffer is at least so large: a thread that empties it may have to wait for a CPU.
const MIN_BUFFER_KIB: u64 = 1 << 10;

/// What is kept, and where it goes when it is wanted.
#[derive(Clone, Debug)]
pub struct FlightPlan {
    /// At least so much of the newest time.
    pub window: Duration,
    /// Bytes of pages that are kept at most: less time where more comes.
    pub most_bytes: u64,
    /// Sessions that are there at most: a new one takes the place of the oldest.
    pub most_sessions: u32,
    pub most_session_bytes: u64,
    /// Receives a message when `Flight::tick` has work to do.
    pub asks: Sender<FlightEvent>,
}

impl FlightPlan {
    /// Size of each CPU's buffer in the kernel by default: all of them hold no more than a part of
    /// what is kept, since they are emptied when they are half full.
    pub(crate) fn buffer_kib(&self) -> u64 {
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let part_kib = (self.most_bytes / 8 / cpus as u64) >> 10;
        part_kib.max(MIN_BUFFER_KIB).min(tracefs::usual_buffer_kib(cpus))
    }
}

/// What a flight recorder has to do.
#[derive(Debug)]
pub enum FlightEvent {
    /// Somebody wants a session.
    Dump(Ask),
    /// There are as many pages as a segment may have: it is time for `Flight::tick`.
    Full,
    /// A notice for the user: a guest connected or disconnected.
    Notice(String),
}

/// Somebody wants a session.
#[derive(Debug)]
pub struct Ask {
    /// Why.
    pub trigger: Trigger,
    /// Receiver of the result, if any.
    pub reply: Option<Sender<DumpReply>>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DumpReply {
    /// The session's folder; none: there is none.
    pub session: Option<PathBuf>,
    /// The time that it covers.
    pub duration_ns: u64,
    /// Bytes of pages in it.
    pub bytes: u64,
    /// What went wrong.
    pub error: Option<String>,
}
