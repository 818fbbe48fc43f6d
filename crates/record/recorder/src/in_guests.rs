//! What to record in guests, and how much of it to keep.

use std::time::Duration;

use tracefs::{FunctionTracer, Profile};

use crate::ending::DEFAULT_GUEST_WAIT;
use crate::samples::Sampling;

/// Default max bytes of pages per guest.
pub const DEFAULT_QUOTA_BYTES: u64 = 16 << 30;

/// What to record in guests.
#[derive(Clone, Debug, Default)]
pub struct InGuests {
    /// Events, systems and patterns.
    pub events: Vec<String>,
    /// A set of events in addition to those; a guest may lack some of them.
    pub profile: Option<Profile>,
    /// Probes, each `FUNCTION [ARGUMENTS]`.
    pub probes: Vec<String>,
    /// Function tracer, in addition to events.
    pub tracer: Option<FunctionTracer>,
    /// Samples of the guest's CPUs.
    pub sampling: Option<Sampling>,
    /// Filters, each `EVENT FILTER` in the kernel's syntax.
    pub filters: Vec<String>,
    /// Keep only the newest pages, as a flight recorder does.
    pub in_segments: bool,
    /// Fetch the recording that the guest's kernel started at boot, instead of a new one.
    pub boot: bool,
    /// Max time that events stay in the guest kernel's buffer, also on partial pages; `None`: a second.
    pub flush: Option<Duration>,
    /// Max time until a guest's pages are synced to the host's disk; `None`: a second.
    pub disk_flush: Option<Duration>,
    /// Size of each CPU's buffer in a guest's kernel; `None`: depends on the number of CPUs.
    pub buffer_kib: Option<u32>,
    /// Max bytes of pages per guest; `None`: [`DEFAULT_QUOTA_BYTES`].
    pub quota_bytes: Option<u64>,
    /// Max time to wait for guests after the end; `None`: [`DEFAULT_GUEST_WAIT`].
    pub wait: Option<Duration>,
    /// Max time for guests to begin after the request; `None`: 30 s, for trace-cmd's agent 60 s, or `wait` if that is
    /// longer.
    pub begins_within: Option<Duration>,
}

impl InGuests {
    /// Max time to wait for guests after the end.
    pub(crate) fn wait(&self) -> Duration {
        self.wait.unwrap_or(DEFAULT_GUEST_WAIT)
    }

    /// Max time for guests to begin; `default` depends on the agent.
    pub(crate) fn begins_within(&self, default: Duration) -> Duration {
        // A user who waits for slow guests at the end also waits at the start.
        self.begins_within.unwrap_or_else(|| default.max(self.wait.unwrap_or_default()))
    }

    /// Max bytes of pages per guest.
    pub(crate) fn quota(&self) -> u64 {
        self.quota_bytes.unwrap_or(DEFAULT_QUOTA_BYTES)
    }
}
