//! Facts from the end of a recording about missing events: the kernel's counts, and faults that its
//! recorder reports. A recording that was not finished may lack any events.

use std::fmt;
use std::path::Path;

use raw_bytes::counted;
use session_json::{CpuLosses, GuestCpu, Recorded};
use tracedat::CpuStat;

use crate::container::Container;
use crate::raw_pages::{MAX_TEXT_BYTES, read_text};
use crate::recording::BufferInfo;
use crate::session_member::SessionMember;
use crate::stream::Stream;

/// The kernel's counts for a CPU at the end of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelCount {
    /// Name of the buffer; empty for the top-level buffer.
    pub buffer: String,
    /// The CPU.
    pub cpu: u32,
    /// Events that the kernel dropped.
    pub lost: u64,
    /// Events that the kernel kept: events that were read from its buffer, and events that remained
    /// there. `None` if not recorded.
    pub events_kept: Option<u64>,
}

/// Why the number of lost events is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// Its recorder was killed, or is still recording.
    Unfinished,
    /// Its recorder reports this many faults.
    Faults(usize),
    /// This many bytes of pages did not reach the recorder.
    PagesMissing(u64),
    /// The kernel dropped this many events in the whole recording, but only a range is read. Only
    /// losses counted in pages have a time.
    InAll(u64),
    /// The recording is a text with fewer events than its header counts.
    Excerpt {
        /// Events in the text.
        lines: u64,
        /// Events that were in the buffer.
        held: u64,
    },
    /// The kernel's counts are missing for some CPUs.
    NoCounts,
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unfinished => f.write_str(
                "the recorder was killed or is still recording; what is missing came after the \
                 last event of its CPU",
            ),
            Self::Faults(1) => f.write_str("the recorder reports a fault"),
            Self::Faults(count) => write!(f, "the recorder reports {count} faults"),
            Self::PagesMissing(bytes) => {
                let kib = bytes.div_ceil(1024);
                write!(f, "{kib} KiB of pages did not reach the recorder")
            }
            Self::InAll(count) => write!(
                f,
                "the kernel dropped {} during the whole recording, not necessarily in this range",
                counted(*count, "event", "events")
            ),
            Self::Excerpt { lines, held } => {
                let held = counted(*held, "event", "events");
                write!(f, "the text has {lines} of the {held} that its header counts")
            }
            Self::NoCounts => f.write_str(
                "the recording does not count the events that the kernel dropped on each CPU",
            ),
        }
    }
}

/// Facts from the end of a recording about missing events.
#[derive(Clone, Debug, Default)]
pub struct Ending {
    /// Counts by CPU and buffer, as far as they exist.
    pub counts: Vec<KernelCount>,
    /// Other dropped events, on unknown CPUs.
    pub lost_anywhere: u64,
    /// Why the counts are incomplete; `None` if they are complete.
    pub doubt: Option<Doubt>,
}

impl Ending {
    /// Reads the end of a container, and the session that contains it.
    pub(crate) fn read(
        path: &Path,
        container: &Container,
        streams: &[Stream],
        buffers: &[BufferInfo],
    ) -> Self {
        let member = SessionMember::from_path(path);
        let session = member.as_ref().and_then(|member| Session::read(path, member));
        let counts = match container.cpu_stats() {
            Some(stats) => stats.iter().filter_map(KernelCount::from_stat).collect(),
            None => {
                let of_folder = folder_counts(path, streams);
                let of_session = || session.as_ref().map(|session| session.counts.clone());
                if of_folder.is_empty() { of_session().unwrap_or_default() } else { of_folder }
            }
        };
        let is_unfinished =
            member.is_some() && session.is_none() && matches!(container, Container::RawPages);
        let doubt = session.as_ref().and_then(Session::doubt).or_else(|| {
            let is_counted = |stream: &Stream| {
                let buffer = buffers.get(stream.buffer()).map_or("", |buffer| buffer.name.as_str());
                counts.iter().any(|count| count.cpu == stream.cpu() && count.buffer == buffer)
            };
            let all = !counts.is_empty() && streams.iter().all(is_counted);
            let why = if is_unfinished { Doubt::Unfinished } else { Doubt::NoCounts };
            (!all).then_some(why)
        });
        Self { counts, lost_anywhere: 0, doubt }
    }

    /// Events that the kernel dropped, according to its counts.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.counts.iter().map(|count| count.lost).fold(self.lost_anywhere, u64::saturating_add)
    }

    /// The count of a CPU in a buffer.
    #[must_use]
    pub fn of_cpu(&self, cpu: u32, buffer: &str) -> Option<&KernelCount> {
        self.counts.iter().find(|count| count.cpu == cpu && count.buffer == buffer)
    }
}

impl KernelCount {
    /// The count in a CPU's statistics, if they have lost events.
    fn from_stat(stat: &CpuStat) -> Option<Self> {
        let counts = stat.entries.zip(stat.read_events);
        Some(Self {
            buffer: stat.buffer.to_string(),
            cpu: stat.cpu,
            lost: stat.lost()?,
            events_kept: counts.map(|(in_buffer, read)| in_buffer.saturating_add(read)),
        })
    }
}

/// Counts in a folder of pages, as in tracefs: `per_cpu/cpuN/stats`.
fn folder_counts(folder: &Path, streams: &[Stream]) -> Vec<KernelCount> {
    let count_of = |stream: &Stream| {
        let path = folder.join(format!("per_cpu/cpu{}/stats", stream.cpu()));
        let text = read_text(&path, MAX_TEXT_BYTES)?;
        KernelCount::from_stat(&CpuStat::of_cpu(stream.cpu(), &String::from_utf8_lossy(&text)))
    };
    streams.iter().filter_map(count_of).collect()
}

/// The entry for a recording in `session.json`.
#[derive(Debug, Default)]
struct Session {
    counts: Vec<KernelCount>,
    faults: usize,
    missing_bytes: u64,
}

impl Session {
    /// `None` if there is no file, or if no recorder wrote it.
    fn read(recording: &Path, member: &SessionMember<'_>) -> Option<Self> {
        let session = session_json::Session::read(recording.parent()?).ok()?;
        Self::for_member(&session.recorded?, member)
    }

    fn for_member(recorded: &Recorded, member: &SessionMember<'_>) -> Option<Self> {
        let SessionMember::Guest(name) = member else {
            return Some(Self {
                counts: recorded.cpus.iter().map(host_count).collect(),
                faults: recorded.faults.len(),
                missing_bytes: 0,
            });
        };
        let guest = recorded.guests.iter().find(|guest| guest.name == *name)?;
        Some(Self {
            counts: guest.cpus.iter().filter_map(guest_count).collect(),
            faults: guest.faults.len(),
            missing_bytes: guest.bytes_lost(),
        })
    }

    fn doubt(&self) -> Option<Doubt> {
        match self {
            Self { faults: 1.., .. } => Some(Doubt::Faults(self.faults)),
            Self { missing_bytes: 1.., .. } => Some(Doubt::PagesMissing(self.missing_bytes)),
            _ => None,
        }
    }
}

fn host_count(cpu: &CpuLosses) -> KernelCount {
    KernelCount { buffer: String::new(), cpu: cpu.cpu, lost: cpu.refused(), events_kept: cpu.kept }
}

fn guest_count(cpu: &GuestCpu) -> Option<KernelCount> {
    let lost = cpu.events_lost?;
    Some(KernelCount { buffer: String::new(), cpu: cpu.cpu, lost, events_kept: cpu.kept })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_session_says_what_each_recording_lost() {
        let recorded: Recorded = serde_json::from_value(json!({
            "cpus": [{"cpu": 1, "overrun": 2, "commit_overrun": 3, "dropped": 4, "kept": 5}],
            "faults": [],
            "guests": [
                {"name": "a", "cpus": [{"cpu": 0, "events_lost": 7, "lost_bytes": 4096}], "faults": []},
                {"name": "b", "cpus": [{"cpu": 0, "events_lost": null}], "faults": ["it went away"]},
            ],
        })).unwrap();
        let host = Session::for_member(&recorded, &SessionMember::Host).unwrap();
        let counted = KernelCount { buffer: String::new(), cpu: 1, lost: 9, events_kept: Some(5) };
        assert_eq!((host.counts.as_slice(), host.doubt()), (&[counted][..], None));
        let a = Session::for_member(&recorded, &SessionMember::Guest("a")).unwrap();
        let lost = a.counts.first().map(|count| count.lost);
        assert_eq!((lost, a.doubt()), (Some(7), Some(Doubt::PagesMissing(4096))));
        let b = Session::for_member(&recorded, &SessionMember::Guest("b")).unwrap();
        assert_eq!((b.counts.len(), b.doubt()), (0, Some(Doubt::Faults(1))));
        assert!(Session::for_member(&recorded, &SessionMember::Guest("c")).is_none());
    }
}
