//! The host: which it is, and what its CPUs lost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The host.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct HostIdentity {
    /// The same for all sessions of this host, and for no other's: 128 bits of a hash of its machine id (machine-
    /// id(5)), which itself stays out. Null: it has none.
    pub id: Option<String>,
    /// What it calls itself.
    pub name: String,
    /// Its kernel's release.
    pub kernel_release: String,
    /// Its architecture, as the kernel calls it.
    pub arch: String,
    /// Its first CPU's model, by /proc/cpuinfo. Null: that does not say.
    pub cpu_model: Option<String>,
    /// That CPU's microcode. Null: /proc/cpuinfo does not say.
    pub microcode: Option<String>,
}

/// One CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct CpuLosses {
    /// Its number.
    pub cpu: u32,
    /// Events overwritten or refused because the buffer was full.
    pub overrun: u64,
    /// Events refused because an interrupted writer held the buffer.
    pub commit_overrun: u64,
    /// Events refused because old ones were kept.
    pub dropped: u64,
    /// Bytes of pages that were written.
    pub bytes: u64,
    /// Events that the kernel kept: those read from its buffer and those left there.
    // Recorders of earlier versions do not report it.
    #[schemars(with = "u64", skip_serializing_if = "Option::is_none")]
    pub kept: Option<u64>,
    /// Events of those kept that the recording does not hold: another program read them, or they could not be
    /// written. Null: the pages were not counted, as of a recorder that was killed.
    // Recorders of earlier versions do not report it.
    #[schemars(skip_serializing_if = "Option::is_none")]
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

/// The same time by both clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct ClockPair {
    /// By the trace clock, as recordings have it.
    pub trace_ns: u64,
    /// Nanoseconds since 1970, by the host's own clock.
    pub unix_ns: u64,
    /// Both were read within this time.
    pub error_ns: u64,
}
