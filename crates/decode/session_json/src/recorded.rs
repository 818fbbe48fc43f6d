//! How a session was recorded.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::flight::FlightSummary;
use crate::guests::GuestSummary;
use crate::host::{ClockPair, CpuLosses, HostIdentity};
use crate::hypercalls::{CollectorSummary, ModuleSummary};
use crate::samples::SamplerSummary;
use crate::tracer::TracerSummary;
use crate::vms::Vm;

/// How a session was recorded.
#[derive(Clone, Debug, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct Recorded {
    /// This program's version.
    pub recorder: String,
    /// The trace clock.
    pub clock: String,
    /// Events that were on.
    pub events: Vec<String>,
    /// Size of each CPU's buffer in the kernel.
    pub buffer_kib: u64,
    /// When it began, on the wall clock.
    pub begun_unix_ns: u64,
    /// How long it lasted.
    pub duration_ns: u64,
    /// The host; none: it was not recorded, only guests were.
    pub host: Option<HostIdentity>,
    /// The host's trace clock and Unix time, when it began and when it ended; none where the kernel alone can read
    /// that clock.
    pub clock_pairs: Vec<ClockPair>,
    /// What each CPU lost. None: the host was not recorded, only guests were.
    pub cpus: Vec<CpuLosses>,
    /// CPU time of the recorder while it recorded.
    pub recorder_cpu_ns: u64,
    /// What went wrong without ending the recording.
    pub faults: Vec<String>,
    /// VMs that ran.
    pub vms: Vec<Vm>,
    /// Guests that were recorded, too.
    pub guests: Vec<GuestSummary>,
    /// Guests whose module stored events in memory that they share.
    pub modules: Vec<ModuleSummary>,
    /// Hypercalls that were collected; none: that was not asked for, or failed.
    pub collector: Option<CollectorSummary>,
    /// What the host's CPUs ran was sampled; none: that was not asked for, or failed.
    pub sampler: Option<SamplerSummary>,
    /// The tracer of functions; none: that was not asked for.
    pub tracer: Option<TracerSummary>,
    /// How a flight recorder dumped it; none: it was recorded from its begin to its end.
    pub flight: Option<FlightSummary>,
}
