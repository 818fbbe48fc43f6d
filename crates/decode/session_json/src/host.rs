//! The host: which it is, and what its CPUs lost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A host.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct HostIdentity {
    /// The same for all sessions of this host, and for no other's: 128 bits of a hash of its machine id, which
    /// stays a secret of the host (machine-id(5)). None: it has no machine id.
    pub id: Option<String>,
    /// What it calls itself.
    pub name: String,
    /// Its kernel's release.
    pub kernel_release: String,
    /// Its architecture, as the kernel calls it.
    pub arch: String,
    /// Its first CPU's model; none: /proc/cpuinfo does not say.
    pub cpu_model: Option<String>,
    /// That CPU's microcode; none: the same.
    pub microcode: Option<String>,
}

/// One CPU's counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct CpuLosses {
    /// The CPU.
    pub cpu: u32,
    /// Events that were overwritten or refused because the buffer was full.
    pub overrun: u64,
    /// Events refused because an interrupted writer held the buffer.
    pub commit_overrun: u64,
    /// Events refused because the buffer was full and old ones are kept.
    pub dropped: u64,
    /// Bytes of pages that were written to the recording.
    pub bytes: u64,
    /// Events that the kernel kept: those that were read from its buffer, and those left there. None: not counted.
    pub kept: Option<u64>,
    /// Events of those that the recording does not hold: another program read them, or they could not be
    /// written. None: the pages were not counted.
    pub missing: Option<u64>,
}

impl CpuLosses {
    /// All events of the CPU that are not in the recording, as far as they were counted.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.refused().saturating_add(self.missing.unwrap_or(0))
    }

    /// Events that the kernel did not keep.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.overrun.saturating_add(self.commit_overrun).saturating_add(self.dropped)
    }
}

/// The same moment by both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct ClockPair {
    /// Nanoseconds of the trace clock, as recordings have them.
    pub trace_ns: u64,
    /// Nanoseconds since 1970, by the host's own clock.
    pub unix_ns: u64,
    /// The two were read within so much of each other.
    pub error_ns: u64,
}
