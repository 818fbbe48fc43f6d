//! What was lost of each CPU's events, as the kernel counted.

use std::collections::HashMap;
use std::io;

use os::folder::Folder;
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
    /// Events of those that the recording does not hold: another program read them, or they could not be
    /// written. None: the pages were not counted.
    pub missing: Option<u64>,
}

impl CpuLosses {
    /// The kernel's counts, with the bytes that were written.
    #[must_use]
    pub fn new(stats: &CpuStats, bytes: u64) -> Self {
        let CpuStats { cpu, overrun, commit_overrun, dropped, .. } = *stats;
        let kept = stats.kept();
        Self { cpu, overrun, commit_overrun, dropped, bytes, kept, missing: None }
    }

    /// All events of the CPU that are not in the recording, as far as they were counted.
    #[must_use]
    pub fn events(&self) -> u64 {
        let dropped = self.overrun.saturating_add(self.commit_overrun).saturating_add(self.dropped);
        dropped.saturating_add(self.missing.unwrap_or(0))
    }

    /// Notes how many events the recording holds; whether the kernel counts fewer, as it does from 0 when
    /// another program has cleared its buffer.
    pub(crate) fn hold(&mut self, held: u64) -> bool {
        self.missing = Some(self.kept.saturating_sub(held));
        held > self.kept
    }
}

/// Notes how many events a recording holds of each CPU; the fault, where the kernel's counts can't be true.
pub(crate) fn hold(cpus: &mut [CpuLosses], held: &[(u32, u64)]) -> Option<String> {
    let held: HashMap<u32, u64> = held.iter().copied().collect();
    let mut reset = Vec::new();
    for cpu in cpus {
        if cpu.hold(held.get(&cpu.cpu).copied().unwrap_or(0)) {
            reset.push(cpu.cpu.to_string());
        }
    }
    (!reset.is_empty()).then(|| {
        let cpus = reset.join(", ");
        format!(
            "CPU {cpus}: the kernel counts fewer events than were recorded, as after another program has cleared \
             its buffer: events may be missing that nobody counted"
        )
    })
}

/// Writes the kernel's own counts of a CPU next to the pages of all CPUs, where readers look for them:
/// with them it is known what was lost.
pub(crate) fn keep_counts(pages_folder: &Folder, cpu: u32, text: &str) -> io::Result<()> {
    let of_cpu = pages_folder.subfolder("per_cpu")?.subfolder(&format!("cpu{cpu}"))?;
    of_cpu.overwrite("stats", text.as_bytes())
}
