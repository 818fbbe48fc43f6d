//! Guests that were recorded along with their host.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::samples::SamplerSummary;
use crate::tracer::TracerSummary;

/// A guest.
#[derive(Clone, Debug, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct GuestSummary {
    /// Its name in the recording.
    pub name: String,
    /// Its file in the folder.
    pub file: String,
    /// The name that it gives itself, at most 64 characters with control characters escaped; not verified. Null: none.
    // Recorders of earlier versions do not report it.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Its identity, if it connected itself: vsock:CID, tls:sha256:CERTIFICATE, tcp:ADDRESS or unix. Null:
    /// the recorder connected to it.
    // Recorders of earlier versions do not report it.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// Its channel.
    pub channel: String,
    /// The VMM's process. Null: not known.
    pub pid: Option<u32>,
    /// The trace clock. Null: its recording never began.
    pub clock: Option<String>,
    /// How long the guest was recorded, from its start until it was asked to stop or disconnected; for the host
    /// see duration_ns. Null: unknown, as with trace-cmd's agent.
    // Recorders of earlier versions do not report it.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub recorded_ns: Option<u64>,
    /// Number of enabled events.
    pub events: u32,
    /// Size of each CPU's buffer in the guest's kernel.
    pub buffer_kib: u32,
    /// CPUs that sent or lost data.
    pub cpus: Vec<GuestCpu>,
    /// Bytes that were not pages of this guest.
    pub senseless_bytes: u64,
    /// CPU time of the agent while it recorded. Null: the agent does not report it.
    pub agent_cpu_ns: Option<u64>,
    /// How often the agent's threads were woken up. Null: the agent does not report it.
    pub agent_wakeups: Option<u64>,
    /// Exits of the guest, while the host was recorded, at the addresses of its channel's device. Null:
    /// unknown, because the channel has no device of its own (TCP, TLS, Unix sockets), the guest's VM is
    /// unknown, or the host's recording has no events with the addresses of exits.
    // Recorders of earlier versions do not report it.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub channel_exits: Option<u64>,
    /// The addresses of that device in the guest, as the agent reports them; empty: it has none of its own.
    #[serde(skip)]
    pub channel_device: DeviceRanges,
    /// Its virtio devices, as its agent reports them: 64 at most. Empty: the agent knows no addresses, or does
    /// not report them.
    // Recorders of earlier versions do not report it.
    #[schemars(skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<GuestDevice>,
    /// The cost of recording an event in the guest's kernel, as its agent measured it after the recording of a
    /// boot: in each round, groups of that many events were measured with recording off, then on. Null: it was
    /// not measured.
    // Recorders of earlier versions do not report it.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub event_cost: Option<EventCostSummary>,
    /// The tracer of functions. Null: it was not requested.
    // Recorders of earlier versions do not report it.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub tracer: Option<TracerSummary>,
    /// Samples of its CPUs. Null: they were not requested.
    // Recorders of earlier versions do not report it.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub sampler: Option<SamplerSummary>,
    /// Faults of this guest's recording.
    pub faults: Vec<String>,
}

/// The cost of an event in a guest.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct EventCostSummary {
    /// The event, as SYSTEM:NAME.
    pub event: String,
    /// Number of such events in each group.
    #[schemars(extend("minimum" = 1))]
    pub repeats: u32,
    /// By round, the time of a group with the event off: the median of several. Nanoseconds of the guest.
    pub off_ns: Vec<u64>,
    /// The same with the event on.
    pub on_ns: Vec<u64>,
}

/// A virtio device of a guest.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct GuestDevice {
    /// Its virtio device name, at most 64 characters with control characters escaped; the guest chose it.
    pub name: String,
    /// The guest's name for its disk or network interface. Null: it has neither.
    pub called: Option<String>,
    /// Where it is.
    #[serde(flatten)]
    pub ranges: DeviceRanges,
}

/// Addresses of a guest's device: ranges, each with its first and last address.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceRanges {
    /// Its guest physical addresses: first and last.
    pub memory: Vec<(u64, u64)>,
    /// Its x86 ports: first and last.
    pub ports: Vec<(u64, u64)>,
}

/// A CPU of a guest.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct GuestCpu {
    /// Its number.
    pub cpu: u32,
    /// Events that the guest's kernel dropped. Null: the agent does not report it.
    pub events_lost: Option<u64>,
    /// Events that the guest's kernel kept: those read from its buffer, and the rest. Null: the agent does
    /// not report it.
    // Recorders of earlier versions do not report it.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub kept: Option<u64>,
    /// Kept events that did not arrive. Null: the agent does not report kept events, or the pages were not counted.
    // Recorders of earlier versions do not report it.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub missing: Option<u64>,
    /// Bytes of pages that arrived.
    pub bytes: u64,
    /// Bytes of pages that were sent but did not arrive.
    pub lost_bytes: u64,
    /// Bytes of pages that were dropped because the guest exceeded its quota.
    pub over_quota_bytes: u64,
    /// Places where pages are missing; the next page of each says so.
    pub gaps: u64,
}

impl GuestSummary {
    /// Events that the guest's kernel dropped, as far as the agent has reported them.
    #[must_use]
    pub fn events_lost(&self) -> Option<u64> {
        let lost = self.cpus.iter().filter_map(|cpu| cpu.events_lost);
        lost.reduce(u64::saturating_add)
    }

    /// Events that the guest's kernel kept but that did not arrive, as far as they were counted.
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
