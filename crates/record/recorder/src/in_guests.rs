//! What is recorded in guests, and how much of it is kept.

use std::time::Duration;

use tracefs::{FunctionTracer, Profile};

use crate::ending::DEFAULT_GUEST_WAIT;
use crate::samples::Sampling;

/// Bytes of pages that are kept of each guest, unless [`InGuests::quota_bytes`] says otherwise.
pub const DEFAULT_QUOTA_BYTES: u64 = 16 << 30;

/// What is recorded in guests.
#[derive(Clone, Debug, Default)]
pub struct InGuests {
    /// Events, systems and patterns.
    pub events: Vec<String>,
    /// A choice of events in addition to those; a guest need not have all of them.
    pub profile: Option<Profile>,
    /// Probes, each `FUNCTION [ARGUMENTS]`.
    pub probes: Vec<String>,
    /// Calls of functions, in addition to events.
    pub tracer: Option<FunctionTracer>,
    /// Sample what their CPUs run, too.
    pub sampling: Option<Sampling>,
    /// Filters, each `EVENT FILTER` as the kernel takes it.
    pub filters: Vec<String>,
    /// Keep the newest pages alone, as a flight recorder does.
    pub in_segments: bool,
    /// Take what the guest's kernel has recorded since it booted, in place of a new recording.
    pub boot: bool,
    /// How long events stay in a guest's kernel at most, also on pages that are not full; unset: a
    /// second.
    pub flush: Option<Duration>,
    /// How long pages of guests stay off the host's disk at most; unset: a second.
    pub disk_flush: Option<Duration>,
    /// Size of each CPU's buffer in a guest's kernel; unset: by the number of CPUs.
    pub buffer_kib: Option<u32>,
    /// Bytes of pages that are kept of each guest at most; unset: [`DEFAULT_QUOTA_BYTES`].
    pub quota_bytes: Option<u64>,
    /// How long guests are waited for after the end; unset: [`DEFAULT_GUEST_WAIT`].
    pub wait: Option<Duration>,
    /// How long guests may take to begin to record once they are asked; unset: 30 s, by trace-cmd's
    /// agent 60 s, or as long as they are waited for after the end where that is longer.
    pub begins_within: Option<Duration>,
}

impl InGuests {
    /// How long guests are waited for after the end.
    pub(crate) fn wait(&self) -> Duration {
        self.wait.unwrap_or(DEFAULT_GUEST_WAIT)
    }

    /// How long guests may take to begin to record; `default` is what their agent usually needs.
    pub(crate) fn begins_within(&self, default: Duration) -> Duration {
        // Who waits for slow guests at the end does so at the start, too.
        self.begins_within.unwrap_or_else(|| default.max(self.wait.unwrap_or_default()))
    }

    /// Bytes of pages that are kept of each guest at most.
    pub(crate) fn quota(&self) -> u64 {
        self.quota_bytes.unwrap_or(DEFAULT_QUOTA_BYTES)
    }
}
