//! Hypercalls and frames that guests sent.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What came of a guest's module.
#[derive(Clone, Debug, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct ModuleSummary {
    /// The name that the guest was recorded under.
    pub name: String,
    /// The file in the session's folder.
    pub file: String,
    /// The memory that it shares.
    pub memory: PathBuf,
    /// The VMM's process, where it is known.
    pub pid: Option<u32>,
    /// The guest's CPUs; 0: the module was never there.
    pub cpus: u64,
    /// Frames that were taken, each with some dozen events.
    pub frames: u64,
    /// Frames that were overwritten before they were taken, or came when the file was as long as it
    /// may be.
    pub frames_missed: u64,
    /// How often what stood in the memory made no sense.
    pub damage: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// What went wrong without ending the recording of others.
    pub faults: Vec<String>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct CollectorSummary {
    /// The file.
    pub file: String,
    /// Its bytes.
    pub bytes: u64,
    /// Hypercalls in it.
    pub hypercalls: u64,
    /// Those that the ring between kernel and recorder had no room for.
    pub ring_full: u64,
    /// Those whose exit was before the collector came.
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
