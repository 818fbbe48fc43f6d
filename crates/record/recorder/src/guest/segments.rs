//! Segments of a guest's pages, for a flight recorder. They are similar to the host's, but a guest sends its pages some
//! time after they were written.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use os::folder::Folder;
use parking_lot::Mutex;

use crate::guest::files::CpuReceived;

#[derive(Debug)]
pub(crate) struct Segments {
    current: AtomicU64,
    /// For each segment: number, begin, and each CPU's counts at that time; the last one is the current segment.
    starts: Mutex<VecDeque<(u64, Instant, Vec<CpuReceived>)>>,
}

/// The kept pages of a guest.
#[derive(Debug, Default)]
pub(crate) struct OpenSegments {
    /// Files of each CPU, in order, with their sizes.
    pub(crate) files: BTreeMap<u32, Vec<(File, u64)>>,
    /// Counts of each CPU since the oldest segment began.
    pub(crate) received: Vec<CpuReceived>,
}

impl Default for Segments {
    fn default() -> Self {
        let first = (0, Instant::now(), Vec::new());
        Self { current: AtomicU64::new(0), starts: Mutex::new(VecDeque::from([first])) }
    }
}

impl Segments {
    /// Number of the current segment.
    pub(crate) fn current(&self) -> u64 {
        self.current.load(Ordering::Relaxed)
    }

    /// Starts the next segment.
    pub(crate) fn roll(&self, received: Vec<CpuReceived>) {
        let number = self.current.fetch_add(1, Ordering::Relaxed) + 1;
        self.starts.lock().push_back((number, Instant::now(), received));
    }

    /// Removes segments that ended before `keep_from`; returns their size.
    pub(crate) fn forget(&self, folder: &Folder, keep_from: Instant) -> u64 {
        let mut starts = self.starts.lock();
        while starts.get(1).is_some_and(|(_, next, _)| *next <= keep_from) {
            starts.pop_front();
        }
        let Some(oldest) = starts.front().map(|(number, ..)| *number) else { return 0 };
        drop(starts);
        let mut bytes = 0;
        for (name, _, number) in files(folder).unwrap_or_default() {
            if number < oldest {
                let size = folder.read(&name).and_then(|file| Ok(file.metadata()?.len()));
                if folder.remove(&name).is_ok() {
                    bytes += size.unwrap_or(0);
                }
            }
        }
        bytes
    }

    pub(crate) fn open(
        &self,
        folder: &Folder,
        received: &[CpuReceived],
    ) -> io::Result<OpenSegments> {
        let mut kept_segments = OpenSegments::default();
        for (name, cpu, _) in files(folder)? {
            let file = folder.read(&name)?;
            let bytes = file.metadata()?.len();
            kept_segments.files.entry(cpu).or_default().push((file, bytes));
        }
        let starts = self.starts.lock();
        let before = starts.front().map(|(.., received)| received.as_slice()).unwrap_or_default();
        for (cpu, now) in received.iter().enumerate() {
            let before = before.get(cpu).copied().unwrap_or_default();
            let number = u32::try_from(cpu).unwrap_or(u32::MAX);
            let cpu_files = kept_segments.files.get(&number).into_iter().flatten();
            kept_segments.received.push(CpuReceived {
                written: cpu_files.map(|(_, bytes)| bytes).sum(),
                lost: now.lost.saturating_sub(before.lost),
                over_quota: now.over_quota.saturating_sub(before.over_quota),
                gaps: now.gaps.saturating_sub(before.gaps),
                ended: now.ended,
            });
        }
        Ok(kept_segments)
    }
}

/// Segment files in a folder, sorted by CPU and number.
fn files(folder: &Folder) -> io::Result<Vec<(String, u32, u64)>> {
    let parse = |name: String| {
        let (cpu, number) = name.strip_prefix("cpu")?.split_once('.')?;
        let (cpu, number) = (cpu.parse().ok()?, number.parse().ok()?);
        Some((name, cpu, number))
    };
    let mut files: Vec<_> = folder.names()?.into_iter().filter_map(parse).collect();
    files.sort_by_key(|(_, cpu, number)| (*cpu, *number));
    Ok(files)
}
