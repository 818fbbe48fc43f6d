//! Guests that were recorded along with their host.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::samples::SamplerSummary;
use crate::tracer::TracerSummary;

/// A guest.
#[derive(Clone, Debug, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct GuestSummary {
    /// The name that it was recorded under.
    pub name: String,
    /// Its file in the folder.
    pub file: String,
    /// What it calls itself, at most 64 characters with control characters escaped; not verified. Null: nothing.
    // Recorders of earlier versions do not report it.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Its identity, where it connected by itself: vsock:CID, tls:sha256:CERTIFICATE, tcp:ADDRESS or unix. Null:
    /// the recorder connected to it.
    // Recorders of earlier versions do not report it.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// The channel that it came through.
    pub channel: String,
    /// The VMM's process. Null: not known.
    pub pid: Option<u32>,
    /// The trace clock. Null: it never began.
    pub clock: Option<String>,
    /// How long the guest was recorded, from its begin to when it was asked to stop or was gone; the recording of
    /// its host has duration_ns. Null: not known, as with trace-cmd's agent.
    // Recorders of earlier versions do not report it.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub recorded_ns: Option<u64>,
    /// How many events were on.
    pub events: u32,
    /// Size of each CPU's buffer in the guest's kernel.
    pub buffer_kib: u32,
    /// CPUs that sent or lost something.
    pub cpus: Vec<GuestCpu>,
    /// Bytes that were no pages of this guest.
    pub senseless_bytes: u64,
    /// CPU time of the agent while it recorded. Null: the agent does not report it.
    pub agent_cpu_ns: Option<u64>,
    /// How often the agent's threads were woken up. Null: the agent does not report it.
    pub agent_wakeups: Option<u64>,
    /// Exits of the guest, while the host was recorded, at the addresses of the device that its channel goes
    /// through. Null: not known, since the channel has no device of its own (TCP, TLS, Unix sockets), the guest's
    /// VM is not known, or the host's recording has no events with addresses of its exits.
    // Recorders of earlier versions do not report it.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub channel_exits: Option<u64>,
    /// Where that device is in the guest, as the agent says; empty: it has none of its own.
    #[serde(skip)]
    pub channel_device: DeviceRanges,
    /// Its virtio devices, as its agent reports them: 64 at most. Empty: it knows the addresses of none, or its
    /// agent does not report them.
    // Recorders of earlier versions do not report it.
    #[schemars(skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<GuestDevice>,
    /// What an event costs the guest's kernel that records it, as its agent has measured it after the recording of
    /// a boot: groups of that many events were measured with it off, then on, round by round. Null: it was not
    /// measured.
    // Recorders of earlier versions do not report it.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub event_cost: Option<EventCostSummary>,
    /// The tracer of functions. Null: it was not requested.
    // Recorders of earlier versions do not report it.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub tracer: Option<TracerSummary>,
    /// Samples of what its CPUs ran. Null: they were not requested.
    // Recorders of earlier versions do not report it.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub sampler: Option<SamplerSummary>,
    /// What went wrong with this guest.
    pub faults: Vec<String>,
}

/// What an event costs a guest.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct EventCostSummary {
    /// The event, as SYSTEM:NAME.
    pub event: String,
    /// How often it was made in each stretch.
    #[schemars(extend("minimum" = 1))]
    pub repeats: u32,
    /// By round, what a stretch took with the event off: the median of some. Nanoseconds of the guest's.
    pub off_ns: Vec<u64>,
    /// The same with the event on.
    pub on_ns: Vec<u64>,
}

/// A virtio device of a guest.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct GuestDevice {
    /// Its name among the devices of virtio, at most 64 characters with control characters escaped; the guest chose
    /// it.
    pub name: String,
    /// What the guest calls its disk or network interface. Null: it has neither.
    pub called: Option<String>,
    /// Where it is.
    #[serde(flatten)]
    pub ranges: DeviceRanges,
}

/// Where a device of a guest is: ranges of addresses, each its first and last.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceRanges {
    /// Guest physical addresses at which it is: first and last.
    pub memory: Vec<(u64, u64)>,
    /// x86's ports at which it is: first and last.
    pub ports: Vec<(u64, u64)>,
}

/// A CPU of a guest.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct GuestCpu {
    /// Its number.
    pub cpu: u32,
    /// Events that the guest's kernel did not keep. Null: the agent does not report it.
    pub events_lost: Option<u64>,
    /// Events that the guest's kernel kept: those read from its buffer and those left there. Null: the agent does
    /// not report it.
    // Recorders of earlier versions do not report it.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub kept: Option<u64>,
    /// Events of those kept that did not come. Null: the agent does not report what was kept, or the pages were not
    /// counted.
    // Recorders of earlier versions do not report it.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub missing: Option<u64>,
    /// Bytes of pages that came.
    pub bytes: u64,
    /// Bytes of pages that were sent and did not come.
    pub lost_bytes: u64,
    /// Bytes of pages that were dropped because the guest exceeded its quota.
    pub over_quota_bytes: u64,
    /// Places where pages are missing; the next page of each says so.
    pub gaps: u64,
}

impl GuestSummary {
    /// Events that the guest's kernel did not keep, as far as the agent has reported.
    #[must_use]
    pub fn events_lost(&self) -> Option<u64> {
        let lost = self.cpus.iter().filter_map(|cpu| cpu.events_lost);
        lost.reduce(u64::saturating_add)
    }

    /// Events that the guest's kernel kept and that did not come, as far as they were counted.
    #[must_use]
    pub fn events_missing(&self) -> u64 {
        self.cpus.iter().filter_map(|cpu| cpu.missing).fold(0, u64::saturating_add)
    }

    /// Bytes that came.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.cpus.iter().map(|cpu| cpu.bytes).fold(0, u64::saturating_add)
    }

    /// Bytes that are missing.
    #[must_use]
    pub fn bytes_lost(&self) -> u64 {
        let lost = |cpu: &GuestCpu| cpu.lost_bytes.saturating_add(cpu.over_quota_bytes);
        self.cpus.iter().map(lost).fold(0, u64::saturating_add)
    }
}
