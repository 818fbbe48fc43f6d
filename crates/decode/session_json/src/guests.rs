//! Guests that were recorded along with their host.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::samples::SamplerSummary;
use crate::tracer::TracerSummary;

/// How a guest was recorded.
#[derive(Clone, Debug, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct GuestSummary {
    /// The name that it was recorded under.
    pub name: String,
    /// Its file in the session's folder.
    pub file: String,
    /// What it calls itself: a label that it chose, and nothing that anybody has checked.
    pub label: Option<String>,
    /// Who it is, where it connected by itself: what the kernel says or its certificate shows.
    pub identity: Option<String>,
    /// The channel that it came through.
    pub channel: String,
    /// The VMM's process, where it is known.
    pub pid: Option<u32>,
    /// The trace clock.
    pub clock: Option<String>,
    /// How long it was recorded: its host's recording goes on for longer. None: that is not known.
    pub recorded_ns: Option<u64>,
    /// How many events were on.
    pub events: u32,
    /// Size of each CPU's buffer in the guest's kernel.
    pub buffer_kib: u32,
    /// What each CPU sent, and lost.
    pub cpus: Vec<GuestCpu>,
    /// Bytes that were no pages of this guest.
    pub senseless_bytes: u64,
    /// CPU time that the agent used, where it reports that.
    pub agent_cpu_ns: Option<u64>,
    /// How often the agent's threads were woken up, where it reports that.
    pub agent_wakeups: Option<u64>,
    /// Exits of the guest at the device that its channel goes through, where they were counted in the host's
    /// recording.
    pub channel_exits: Option<u64>,
    /// Where that device is in the guest, as the agent says; empty: it has none of its own.
    #[serde(skip)]
    pub channel_device: Vec<DeviceRange>,
    /// Where its virtio devices are, as its agent says.
    pub devices: Vec<GuestDevice>,
    /// What an event costs the guest, as its agent has measured it after a boot.
    pub event_cost: Option<EventCostSummary>,
    /// The tracer of functions; none: that was not asked for.
    pub tracer: Option<TracerSummary>,
    /// What its CPUs ran was sampled; none: that was not asked for.
    pub sampler: Option<SamplerSummary>,
    /// What went wrong without ending the recording of others.
    pub faults: Vec<String>,
}

/// An event that a guest made so often, recorded and not recorded, in turns.
#[derive(Clone, Debug, PartialEq, Eq, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct EventCostSummary {
    /// The event, as `SYSTEM:NAME`.
    pub event: String,
    /// How often it was made in each stretch that was measured.
    pub repeats: u32,
    /// By round what a stretch took with the event off: the median of some.
    pub off_ns: Vec<u64>,
    /// The same with the event on.
    pub on_ns: Vec<u64>,
}

/// A virtio device of a guest: names are labels that it chose.
#[derive(Clone, Debug, PartialEq, Eq, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct GuestDevice {
    /// Its name among the devices of virtio.
    pub name: String,
    /// What the guest calls its disk or network interface; none: it has neither.
    pub called: Option<String>,
    /// Guest physical addresses at which it is, first and last.
    pub memory: Vec<(u64, u64)>,
    /// The same of x86's ports.
    pub ports: Vec<(u64, u64)>,
}

/// What came of one CPU of a guest.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct GuestCpu {
    /// The CPU.
    pub cpu: u32,
    /// Events that the guest's kernel did not keep, where the agent reports that.
    pub events_lost: Option<u64>,
    /// Events that the guest's kernel kept, where the agent reports that.
    pub kept: Option<u64>,
    /// Events of those that did not come, where `kept` is known and the pages were counted.
    pub missing: Option<u64>,
    /// Bytes of pages that came.
    pub bytes: u64,
    /// Bytes of pages that the guest sent and that did not come.
    pub lost_bytes: u64,
    /// Bytes of pages that were dropped because the guest sent more than it may.
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

/// Where a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceRange {
    /// Among x86's ports, not in guest physical memory.
    pub ports: bool,
    /// The first address.
    pub first: u64,
    /// The last one.
    pub last: u64,
}
