//! Hypercalls and frames that guests sent.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A guest whose module stored events in memory that it shares.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct ModuleSummary {
    /// The name that the guest was recorded under.
    pub name: String,
    /// Its file in the folder.
    pub file: String,
    /// The memory that it shares.
    pub memory: PathBuf,
    /// The VMM's process. Null: not known.
    pub pid: Option<u32>,
    /// The guest's CPUs; 0: the module was never there.
    pub cpus: u64,
    /// Frames that were taken, each with some dozen events.
    pub frames: u64,
    /// Frames that were overwritten before they were taken, or came when the file had its maximum size.
    pub frames_missed: u64,
    /// How often the memory's content made no sense.
    pub damage: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// What went wrong without ending the recording of others.
    pub faults: Vec<String>,
}

/// Hypercalls that BPF programs collected.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct CollectorSummary {
    /// The file's name.
    pub file: String,
    /// Its size.
    pub bytes: u64,
    /// Hypercalls in it.
    pub hypercalls: u64,
    /// Those that the ring between kernel and recorder had no room for.
    pub ring_full: u64,
    /// Those whose exit was before the collector began.
    pub no_exit: u64,
    /// Exits of vCPUs that there was no room for.
    pub no_room: u64,
    /// Those whose registers couldn't be read.
    pub unreadable: u64,
}

impl CollectorSummary {
    /// Hypercalls that are known to be missing.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.ring_full.saturating_add(self.no_exit).saturating_add(self.unreadable)
    }
}
