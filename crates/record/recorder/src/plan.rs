//! The plan of a recording.

use std::time::Duration;

use tracefs::{FunctionTracer, Profile};

use crate::flight_plan::FlightPlan;
use crate::hypercalls::Hypercalls;
use crate::in_guests::InGuests;
use crate::samples::Sampling;

/// A probe where KVM emulates a guest's VMRUN, with the clean bits of the guest's VMCB: at 0xc0 according to the AMD64
/// Architecture Programmer's Manual (volume 2, appendix B). The function's third argument is the VMCB since Linux 5.12.
pub const NESTED_WRITES: &str = "enter_svm_guest_mode clean=+0xc0($arg3):x32";

#[derive(Clone, Debug, Default)]
pub struct RecordPlan {
    /// Events, systems and patterns.
    pub events: Vec<String>,
    /// A set of events, in addition to those.
    pub profile: Option<Profile>,
    /// Probes, each `FUNCTION [ARGUMENTS]`.
    pub probes: Vec<String>,
    /// Function tracer, in addition to events.
    pub tracer: Option<FunctionTracer>,
    /// Name or process id of a VM, to record only its threads.
    pub vm: Option<String>,
    /// The trace clock; `None`: the best one.
    pub clock: Option<String>,
    /// Size of each CPU's buffer in the kernel; `None`: depends on the number of CPUs.
    pub buffer_kib: Option<u64>,
    /// Max bytes of the host's pages; `None`: no limit.
    pub quota_bytes: Option<u64>,
    /// Max time until the host's events are synced to disk; `None`: a second.
    pub flush: Option<Duration>,
    /// Keep only the newest of the host's pages until a dump; `None`: keep all.
    pub flight: Option<FlightPlan>,
    /// Guests to record: names of VMs, or `[NAME=]CHANNEL`.
    pub guests: Vec<String>,
    /// Guests whose kernel module stores events in shared memory: names of VMs, or `[NAME=]shm:FILE`.
    pub modules: Vec<String>,
    /// What to record in guests.
    pub in_guests: InGuests,
    /// Hypercalls to collect with BPF programs, in addition to or instead of events.
    pub hypercalls: Option<Hypercalls>,
    /// Samples of the host's CPUs, in addition to events.
    pub sampling: Option<Sampling>,
}

impl RecordPlan {
    /// Whether guests may join later: a boot recording can still be fetched later, and the guests of a flight recorder
    /// come and go.
    pub(crate) const fn takes_guests_later(&self) -> bool {
        self.in_guests.boot || self.flight.is_some()
    }
}
