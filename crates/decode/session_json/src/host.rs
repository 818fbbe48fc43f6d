//! The host: which it is, and what its CPUs lost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The host.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct HostIdentity {
    /// The same for all sessions of this host, and only for them: 128 bits of a hash of its machine id
    /// (machine-id(5)), which is not stored itself. Null: it has none.
    pub id: Option<String>,
    /// Its host name.
    pub name: String,
    /// Its kernel's release.
    pub kernel_release: String,
    /// The kernel's name of its architecture.
    pub arch: String,
    /// Its first CPU's model, from /proc/cpuinfo. Null: it is not there.
    pub cpu_model: Option<String>,
    /// That CPU's microcode. Null: it is not in /proc/cpuinfo.
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
    /// Events dropped because old events were kept.
    pub dropped: u64,
    /// Bytes of pages that were written.
    pub bytes: u64,
    /// Events that the kernel kept: those read from its buffer, and the rest.
    // Recorders of earlier versions do not report it.
    #[schemars(with = "u64", skip_serializing_if = "Option::is_none")]
    pub kept: Option<u64>,
    /// Kept events that the recording lacks: another program read them, or they could not be written. Null: the
    /// pages were not counted, as when the recorder was killed.
    // Recorders of earlier versions do not report it.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub missing: Option<u64>,
}

impl CpuLosses {
    /// All events of the CPU that the recording lacks, as far as they were counted.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.refused().saturating_add(self.missing.unwrap_or(0))
    }

    /// Events that the kernel dropped.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.overrun.saturating_add(self.commit_overrun).saturating_add(self.dropped)
    }
}

/// The same time by both clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct ClockPair {
    /// By the trace clock, as in recordings.
    pub trace_ns: u64,
    /// Nanoseconds since 1970, by the host's own clock.
    pub unix_ns: u64,
    /// Both clocks were read within this time.
    pub error_ns: u64,
}
