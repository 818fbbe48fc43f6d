//! The kernel's per-CPU counts at the end of a recording: CPUSTAT options.

use raw_bytes::slice;
use std::sync::Arc;

/// Reads CPUSTAT options in order: those of an instance follow an option with "\nBuffer: NAME\n\n"
/// instead of counts (`add_buffer_stat()` of trace-cmd).
#[derive(Debug, Default)]
pub(crate) struct CpuStats {
    buffer: Arc<str>,
    pub(crate) list: Vec<CpuStat>,
}

impl CpuStats {
    /// Reads the next option's data; false if it has neither counts nor a name.
    pub(crate) fn take(&mut self, data: &[u8]) -> bool {
        let text = slice::text(data);
        if let Some(name) = text.trim().strip_prefix("Buffer:") {
            self.buffer = name.trim().into();
            return true;
        }
        let stat = CpuStat::parse(&text, &self.buffer);
        let known = stat.is_some();
        self.list.extend(stat);
        known
    }
}

/// A CPU's `per_cpu/cpuN/stats` at the end of the recording.
///
/// A count that the kernel did not write is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuStat {
    /// Name of the buffer; empty for the top-level buffer.
    pub buffer: Arc<str>,
    /// The CPU's number.
    pub cpu: u32,
    /// Records that remained in the ring buffer.
    pub entries: Option<u64>,
    /// Records that newer ones overwrote before they were read: lost.
    pub overrun: Option<u64>,
    /// Records lost because a nested writer would have wrapped the buffer.
    pub commit_overrun: Option<u64>,
    /// Bytes not read from the ring buffer.
    pub bytes: Option<u64>,
    /// Records dropped because the buffer was full and not in overwrite mode: lost.
    pub dropped_events: Option<u64>,
    /// Records that were read.
    pub read_events: Option<u64>,
    /// Time of the oldest record, as the kernel printed it.
    pub oldest_event_ts: Option<String>,
    /// Time when the counts were taken, as the kernel printed it.
    pub now_ts: Option<String>,
}

impl CpuStat {
    /// Records known to be lost; `None` if nothing was counted.
    #[must_use]
    pub fn lost(&self) -> Option<u64> {
        let counts = [self.overrun, self.commit_overrun, self.dropped_events];
        counts.into_iter().flatten().reduce(u64::saturating_add)
    }

    /// Parses the kernel's text for a CPU of the top-level buffer.
    #[must_use]
    pub fn of_cpu(cpu: u32, text: &str) -> Self {
        let mut stat = Self { cpu, ..Self::default() };
        stat.take_counts(text);
        stat
    }

    /// Reads an option's text; `None` without a `CPU:` line.
    fn parse(text: &str, buffer: &Arc<str>) -> Option<Self> {
        let mut stat = Self { buffer: Arc::clone(buffer), ..Self::default() };
        let cpu = stat.take_counts(text);
        Some(Self { cpu: cpu?, ..stat })
    }

    /// Reads the counts in each line; returns the CPU if a line has it.
    fn take_counts(&mut self, text: &str) -> Option<u32> {
        let mut cpu = None;
        for (key, value) in text.lines().filter_map(|line| line.split_once(':')) {
            let value = value.trim();
            let count = value.parse().ok();
            match key.trim() {
                "CPU" => cpu = value.parse().ok(),
                "entries" => self.entries = count,
                "overrun" => self.overrun = count,
                "commit overrun" => self.commit_overrun = count,
                "bytes" => self.bytes = count,
                "dropped events" => self.dropped_events = count,
                "read events" => self.read_events = count,
                "oldest event ts" => self.oldest_event_ts = Some(value.to_owned()),
                "now ts" => self.now_ts = Some(value.to_owned()),
                _ => {}
            }
        }
        cpu
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_text_is_read() {
        let text = b"CPU: 3\nentries: 10\noverrun: 2\ncommit overrun: 0\nbytes: 408\n\
                     oldest event ts:    68.140526\nnow ts:    72.875418\n\
                     dropped events: 5\nread events: 7\n\0";
        let mut stats = CpuStats::default();
        assert!(stats.take(text));
        assert!(stats.take(b"\nBuffer: second one\n\n\0"));
        assert!(stats.take(b"CPU: 0\n"));
        assert!(!stats.take(b"entries: 1\n"));
        let [stat, second] = &stats.list[..] else { panic!("two CPUs") };
        assert_eq!((stat.cpu, stat.entries, stat.read_events), (3, Some(10), Some(7)));
        assert_eq!(stat.oldest_event_ts.as_deref(), Some("68.140526"));
        assert_eq!(stat.lost(), Some(7));
        assert_eq!((&*stat.buffer, &*second.buffer), ("", "second one"));
        assert_eq!(second.lost(), None);
    }
}
