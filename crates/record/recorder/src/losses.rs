//! Losses of each CPU's events, from the kernel's counts.

use std::collections::HashMap;
use std::io;

use os::folder::Folder;
use session_json::CpuLosses;
use tracefs::CpuStats;

/// Converts the kernel's counts of a CPU, with the number of bytes written.
pub(crate) fn from_stats(stats: &CpuStats, bytes: u64) -> CpuLosses {
    let CpuStats { cpu, overrun, commit_overrun, dropped, .. } = *stats;
    let kept_events = Some(stats.kept_events());
    CpuLosses { cpu, overrun, commit_overrun, dropped, bytes, kept: kept_events, missing: None }
}

/// Notes the number of events in the recording per CPU; returns a fault if the kernel's counts contradict it.
pub(crate) fn hold(cpus: &mut [CpuLosses], held: &[(u32, u64)]) -> Option<String> {
    let held: HashMap<u32, u64> = held.iter().copied().collect();
    let mut reset = Vec::new();
    for cpu in cpus {
        let held = held.get(&cpu.cpu).copied().unwrap_or(0);
        let kept_events = cpu.kept.unwrap_or(0);
        cpu.missing = Some(kept_events.saturating_sub(held));
        // The kernel's count restarts at 0 when another program clears its buffer.
        if held > kept_events {
            reset.push(cpu.cpu.to_string());
        }
    }
    (!reset.is_empty()).then(|| {
        let cpus = reset.join(", ");
        format!(
            "CPU {cpus}: the kernel counted fewer events than were recorded, perhaps because another program cleared its buffer: uncounted events may be missing"
        )
    })
}

/// Writes the kernel's counts of a CPU next to the pages, where readers look for losses.
pub(crate) fn keep_counts(pages_folder: &Folder, cpu: u32, text: &str) -> io::Result<()> {
    let of_cpu = pages_folder.subfolder("per_cpu")?.subfolder(&format!("cpu{cpu}"))?;
    of_cpu.overwrite("stats", text.as_bytes())
}
