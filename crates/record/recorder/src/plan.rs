//! What a recording is to be of.

use std::time::Duration;

use tracefs::{FunctionTracer, Profile};

use crate::flight_plan::FlightPlan;
use crate::hypercalls::Hypercalls;
use crate::in_guests::InGuests;
use crate::samples::Sampling;

/// A probe where KVM has a guest's VMRUN run that guest's own guest, with the clean bits of its
/// control block: at 0xc0, by the AMD64 Architecture Programmer's Manual (volume 2, appendix B).
/// The function's third argument is that block since Linux 5.12.
pub const NESTED_WRITES: &str = "enter_svm_guest_mode clean=+0xc0($arg3):x32";

#[derive(Clone, Debug, Default)]
pub struct RecordPlan {
    /// Events, systems and patterns.
    pub events: Vec<String>,
    /// A choice of events, in addition to those.
    pub profile: Option<Profile>,
    /// Probes, each `FUNCTION [ARGUMENTS]`.
    pub probes: Vec<String>,
    /// Calls of functions, in addition to events.
    pub tracer: Option<FunctionTracer>,
    /// The VM, by name or process id, whose threads alone are recorded.
    pub vm: Option<String>,
    /// The trace clock; unset: the best one.
    pub clock: Option<String>,
    /// Size of each CPU's buffer in the kernel; unset: by the number of CPUs.
    pub buffer_kib: Option<u64>,
    /// Bytes of the host's pages that are written at most; unset: as many as come.
    pub quota_bytes: Option<u64>,
    /// How long the host's events stay off its disk at most; unset: a second.
    pub flush: Option<Duration>,
    /// The newest of the host's pages alone are kept, until they are wanted; unset: all of them.
    pub flight: Option<FlightPlan>,
    /// Guests that are recorded, too: names of VMs, or `[NAME=]CHANNEL`.
    pub guests: Vec<String>,
    /// Guests whose kernel module stores events in memory that they share: names of VMs, or
    /// `[NAME=]shm:FILE`.
    pub modules: Vec<String>,
    /// What is recorded in guests.
    pub in_guests: InGuests,
    /// Hypercalls that are collected by BPF programs, in addition to or in place of events.
    pub hypercalls: Option<Hypercalls>,
    /// Samples of what the host's CPUs run, in addition to events.
    pub sampling: Option<Sampling>,
}

impl RecordPlan {
    /// Whether guests are taken in as they come up: what one has recorded since it booted can be had later, too, and
    /// those of a flight recorder come and go.
    pub(crate) const fn takes_guests_later(&self) -> bool {
        self.in_guests.boot || self.flight.is_some()
    }
}
