//! Hypercalls and frames that guests sent.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A guest whose module stored events in memory that it shares.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct ModuleSummary {
    /// The guest's name in the recording.
    pub name: String,
    /// Its file in the folder.
    pub file: String,
    /// The memory that it shares.
    pub memory: PathBuf,
    /// The VMM's process. Null: not known.
    pub pid: Option<u32>,
    /// The guest's CPUs; 0: the module was never loaded.
    pub cpus: u64,
    /// Frames that were read, each with a few dozen events.
    pub frames: u64,
    /// Frames that were overwritten before they were read, or arrived when the file had its maximum size.
    pub frames_missed: u64,
    /// How often the memory's content was malformed.
    pub damage: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Faults that did not end the recording of others.
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
    /// Those that did not fit into the ring between kernel and recorder.
    pub ring_full: u64,
    /// Those whose exit was before the collector began.
    pub no_exit: u64,
    /// Exits of vCPUs for which there was no space.
    pub no_room: u64,
    /// Those whose registers could not be read.
    pub unreadable: u64,
}

impl CollectorSummary {
    /// Hypercalls that are known to be missing.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.ring_full.saturating_add(self.no_exit).saturating_add(self.unreadable)
    }
}
