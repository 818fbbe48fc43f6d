//! What the kernel counted for each CPU while it was recorded: `per_cpu/cpuN/stats`.

use serde::Serialize;

use crate::error::Result;
use crate::instance::Instance;

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
}

impl CpuLosses {
    /// All events of the CPU that are not in the recording.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.overrun.saturating_add(self.commit_overrun).saturating_add(self.dropped)
    }
}

/// A CPU's counts now, and the kernel's own text of them.
pub(crate) fn of_cpu(instance: &Instance, cpu: u32) -> Result<(CpuLosses, String)> {
    let text = instance.get(&format!("per_cpu/cpu{cpu}/stats"))?;
    Ok((parse(cpu, &text), text))
}

fn parse(cpu: u32, text: &str) -> CpuLosses {
    let count = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        line.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
    };
    CpuLosses {
        cpu,
        overrun: count("overrun"),
        commit_overrun: count("commit overrun"),
        dropped: count("dropped events"),
        bytes: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_the_kernels_text() {
        let text = "entries: 5\noverrun: 3\ncommit overrun: 2\nbytes: 9\noldest event ts:     1.0\n\
                    now ts:     2.0\ndropped events: 7\nread events: 11\n";
        let losses = parse(4, text);
        assert_eq!((losses.overrun, losses.commit_overrun, losses.dropped), (3, 2, 7));
        assert_eq!((losses.cpu, losses.events()), (4, 12));
        assert_eq!(parse(0, "").events(), 0);
    }
}
