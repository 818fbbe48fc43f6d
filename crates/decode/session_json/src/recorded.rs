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
    /// Program and version.
    pub recorder: String,
    /// The trace clock.
    pub clock: String,
    /// Enabled events, as SYSTEM:NAME.
    pub events: Vec<String>,
    /// Size of each CPU's buffer in the kernel.
    pub buffer_kib: u64,
    /// When it began, in Unix time.
    pub begun_unix_ns: u64,
    /// How long it lasted.
    pub duration_ns: u64,
    /// The host. Null: it was not recorded, only guests were.
    // Recorders of earlier versions do not report it.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub host: Option<HostIdentity>,
    /// The host's trace clock and Unix time, read together at the start and at the end; empty if only the
    /// kernel can read that clock.
    // Recorders of earlier versions do not report it.
    #[schemars(skip_serializing_if = "Vec::is_empty")]
    pub clock_pairs: Vec<ClockPair>,
    /// Data written and lost, for each CPU of the host. Empty: only guests were recorded.
    pub cpus: Vec<CpuLosses>,
    /// CPU time of the recorder while it recorded.
    pub recorder_cpu_ns: u64,
    /// Faults that did not end the recording.
    pub faults: Vec<String>,
    /// VMs that ran while the host was recorded.
    pub vms: Vec<Vm>,
    /// Guests that were recorded, too.
    pub guests: Vec<GuestSummary>,
    /// Guests whose module stored events in memory that they share.
    // Recorders of earlier versions do not report it.
    #[schemars(skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<ModuleSummary>,
    /// Hypercalls that BPF programs collected, in a file next to the host's recording. Null: that was not
    /// requested, or failed.
    // Recorders of earlier versions do not report it.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub collector: Option<CollectorSummary>,
    /// Samples of the host's CPUs. Null: they were not requested, or failed.
    // Recorders of earlier versions do not report it.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub sampler: Option<SamplerSummary>,
    /// The tracer of functions. Null: it was not requested.
    // Recorders of earlier versions do not report it.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub tracer: Option<TracerSummary>,
    /// How a flight recorder (record --flight) dumped it. Null: it was recorded from its begin to its end.
    // Recorders of earlier versions do not report it.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub flight: Option<FlightSummary>,
}
