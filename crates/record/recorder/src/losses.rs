//! What was lost of each CPU's events, as the kernel counted.

use std::io;

use folder::Folder;
use serde::Serialize;
use tracefs::CpuStats;

/// One CPU's counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
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
    /// Events that the kernel kept: those that were read from its buffer, and those left there.
    pub kept: u64,
}

impl CpuLosses {
    /// The kernel's counts, with the bytes that were written.
    #[must_use]
    pub fn new(stats: &CpuStats, bytes: u64) -> Self {
        let CpuStats { cpu, overrun, commit_overrun, dropped, .. } = *stats;
        Self { cpu, overrun, commit_overrun, dropped, bytes, kept: stats.kept() }
    }

    /// All events of the CPU that are not in the recording.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.overrun.saturating_add(self.commit_overrun).saturating_add(self.dropped)
    }
}

/// Writes the kernel's own counts of a CPU next to the pages of all CPUs, where readers look for them:
/// with them it is known what was lost.
pub(crate) fn keep_counts(pages_folder: &Folder, cpu: u32, text: &str) -> io::Result<()> {
    let of_cpu = pages_folder.subfolder("per_cpu")?.subfolder(&format!("cpu{cpu}"))?;
    of_cpu.overwrite("stats", text.as_bytes())
}
