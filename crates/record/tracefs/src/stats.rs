//! The kernel's event counts of each CPU: `per_cpu/cpuN/stats`.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::error::{Result, TracefsError};
use crate::instance::Instance;
use crate::probes::MissedHits;

/// Counts of a CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuStats {
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
    /// The buffer's clock at the time of this count, as a page timestamp. For clocks in nanoseconds, rounded down to a
    /// microsecond. `None` if the kernel does not give it.
    pub now_stamp: Option<u64>,
}

/// The kernel's label of refused events.
const DROPPED: &str = "dropped events";
/// Max size of the kernel's text.
const MAX_BYTES: usize = 4096;

/// A CPU's counts in a file that stays open, for a thread that reads them repeatedly.
#[derive(Debug)]
pub struct StatsFile {
    cpu: u32,
    file: File,
    /// Missed hits of probes, which count as dropped events of this CPU.
    missed_hits: Option<MissedHits>,
}

impl StatsFile {
    /// Opens the file.
    ///
    /// # Errors
    /// When there is no such CPU.
    pub(crate) fn open(
        instance: &Instance,
        cpu: u32,
        missed_hits: Option<MissedHits>,
    ) -> Result<Self> {
        let path = instance.file(&format!("per_cpu/cpu{cpu}/stats"));
        let file = File::open(&path).map_err(TracefsError::io("open", &path))?;
        Ok(Self { cpu, file, missed_hits })
    }

    /// Reads the counts.
    ///
    /// # Errors
    /// When the kernel does not give them.
    pub fn now(&self) -> io::Result<CpuStats> {
        let mut text = [0; MAX_BYTES];
        // Each read from the beginning makes the kernel count again.
        let read = self.file.read_at(&mut text, 0)?;
        let text = String::from_utf8_lossy(text.get(..read).unwrap_or_default());
        let stats = CpuStats::parse(self.cpu, &text);
        let missed = self.missed_hits.as_ref().map_or(0, MissedHits::now);
        Ok(CpuStats { dropped: stats.dropped.saturating_add(missed), ..stats })
    }
}

impl CpuStats {
    /// Number of the CPU's events that the recording lacks.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.overrun.saturating_add(self.commit_overrun).saturating_add(self.dropped)
    }

    /// Number of events that the kernel kept, read or not.
    #[must_use]
    pub fn kept_events(&self) -> u64 {
        self.read.saturating_add(self.entries)
    }
}

impl CpuStats {
    /// Reads a CPU's counts, and returns the kernel's text as well.
    ///
    /// # Errors
    /// When there is no such CPU.
    pub fn now(instance: &Instance, cpu: u32) -> Result<(Self, String)> {
        let text = instance.get(&format!("per_cpu/cpu{cpu}/stats"))?;
        Ok((Self::parse(cpu, &text), text))
    }

    /// Adds dropped events to the counts and to the text.
    pub(crate) fn and_dropped(self, more: u64, text: String) -> (Self, String) {
        if more == 0 {
            return (self, text);
        }
        let stats = Self { dropped: self.dropped.saturating_add(more), ..self };
        let line = |line: &str| {
            if line.starts_with(DROPPED) {
                format!("{DROPPED}: {}\n", stats.dropped)
            } else {
                format!("{line}\n")
            }
        };
        let text = text.lines().map(line).collect();
        (stats, text)
    }

    /// Parses the kernel's text; missing counts are 0.
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
            dropped: count(DROPPED),
            read: count("read events"),
            entries: count("entries"),
            now_stamp: now_stamp(text),
        }
    }
}

/// Parses `now ts`: seconds with microseconds, or ticks of a clock that does not count nanoseconds.
fn now_stamp(text: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix("now ts:"))?.trim();
    let Some((seconds, micros)) = value.split_once('.') else { return value.parse().ok() };
    let (seconds, micros) = (seconds.parse::<u64>().ok()?, micros.parse::<u64>().ok()?);
    seconds.checked_mul(1_000_000_000)?.checked_add(micros.checked_mul(1000)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_the_kernels_text() {
        let text = "entries: 5\noverrun: 3\ncommit overrun: 2\nbytes: 9\noldest event ts:     1.000000\n\
                    now ts:     2.000007\ndropped events: 7\nread events: 11\n";
        let losses = CpuStats::parse(4, text);
        assert_eq!((losses.overrun, losses.commit_overrun, losses.dropped), (3, 2, 7));
        assert_eq!((losses.cpu, losses.events()), (4, 12));
        assert_eq!((losses.read, losses.kept_events()), (11, 16));
        let (more, changed) = losses.clone().and_dropped(5, text.to_owned());
        assert_eq!((more.dropped, CpuStats::parse(4, &changed)), (12, more.clone()));
        assert_eq!(changed.lines().count(), text.lines().count());
        assert_eq!(
            losses.clone().and_dropped(0, text.to_owned()),
            (losses.clone(), text.to_owned())
        );
        assert_eq!(CpuStats::parse(0, "").events(), 0);
        assert_eq!(
            (losses.now_stamp, CpuStats::parse(0, "").now_stamp),
            (Some(2_000_007_000), None)
        );
        assert_eq!(CpuStats::parse(0, "now ts: 4711\n").now_stamp, Some(4711));
    }
}
