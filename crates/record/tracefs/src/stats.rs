//! What the kernel counted for each CPU while it was recorded: `per_cpu/cpuN/stats`.

use crate::error::Result;
use crate::instance::Instance;

/// One CPU's counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuStats {
    /// The CPU.
    pub cpu: u32,
    /// Events that were overwritten or refused because the buffer was full.
    pub overrun: u64,
    /// Events refused because an interrupted writer held the buffer.
    pub commit_overrun: u64,
    /// Events refused because the buffer was full and old ones are kept.
    pub dropped: u64,
    /// Events that were read from the buffer.
    pub read: u64,
    /// Events that are still in the buffer.
    pub entries: u64,
}

impl CpuStats {
    /// All events of the CPU that are not in the recording.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.overrun.saturating_add(self.commit_overrun).saturating_add(self.dropped)
    }

    /// All events that the kernel kept, read by now or not.
    #[must_use]
    pub fn kept(&self) -> u64 {
        self.read.saturating_add(self.entries)
    }
}

impl CpuStats {
    /// A CPU's counts now, and the kernel's own text of them.
    ///
    /// # Errors
    /// When there is no such CPU.
    pub fn now(instance: &Instance, cpu: u32) -> Result<(Self, String)> {
        let text = instance.get(&format!("per_cpu/cpu{cpu}/stats"))?;
        Ok((Self::parse(cpu, &text), text))
    }

    /// The counts in the kernel's text; what is not in it is 0.
    #[must_use]
    pub fn parse(cpu: u32, text: &str) -> Self {
        let count = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
            line.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
        };
        Self {
            cpu,
            overrun: count("overrun"),
            commit_overrun: count("commit overrun"),
            dropped: count("dropped events"),
            read: count("read events"),
            entries: count("entries"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_the_kernels_text() {
        let text = "entries: 5\noverrun: 3\ncommit overrun: 2\nbytes: 9\noldest event ts:     1.0\n\
                    now ts:     2.0\ndropped events: 7\nread events: 11\n";
        let losses = CpuStats::parse(4, text);
        assert_eq!((losses.overrun, losses.commit_overrun, losses.dropped), (3, 2, 7));
        assert_eq!((losses.cpu, losses.events()), (4, 12));
        assert_eq!((losses.read, losses.kept()), (11, 16));
        assert_eq!(CpuStats::parse(0, "").events(), 0);
    }
}
