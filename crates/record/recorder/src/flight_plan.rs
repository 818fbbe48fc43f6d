//! The plan and the events of a flight recorder.

use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use session_json::Trigger;

/// Min buffer size: a thread that empties it may have to wait for a CPU.
const MIN_BUFFER_KIB: u64 = 1 << 10;

/// What to keep, and where to write sessions.
#[derive(Clone, Debug)]
pub struct FlightPlan {
    /// Min time to keep.
    pub window: Duration,
    /// Max bytes of pages to keep; limits the time if many events arrive.
    pub most_bytes: u64,
    /// Max sessions: a new one replaces the oldest.
    pub most_sessions: u32,
    pub most_session_bytes: u64,
    /// Receives a message when `Flight::tick` has work to do.
    pub asks: Sender<FlightEvent>,
}

impl FlightPlan {
    /// Default size of each CPU's buffer in the kernel. All buffers together hold only a part of the kept pages, since
    /// they are emptied when they are half full.
    pub(crate) fn buffer_kib(&self) -> u64 {
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let part_kib = (self.most_bytes / 8 / cpus as u64) >> 10;
        part_kib.max(MIN_BUFFER_KIB).min(tracefs::usual_buffer_kib(cpus))
    }
}

/// Work for a flight recorder.
#[derive(Debug)]
pub enum FlightEvent {
    /// A session was requested.
    Dump(Ask),
    /// A segment has reached its max size: call `Flight::tick`.
    Full,
    /// A notice for the user: a guest connected or disconnected.
    Notice(String),
}

/// A request for a session.
#[derive(Debug)]
pub struct Ask {
    /// The reason.
    pub trigger: Trigger,
    /// Receiver of the result, if any.
    pub reply: Option<Sender<DumpReply>>,
}

/// The result of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DumpReply {
    /// The session's folder; `None` if it failed.
    pub session: Option<PathBuf>,
    /// Time that the session covers.
    pub duration_ns: u64,
    /// Size of its pages.
    pub bytes: u64,
    /// The error, if any.
    pub error: Option<String>,
}
