//! An interval of the kept pages: one segment per CPU.

use std::time::Instant;

use tracefs::{CpuStats, UnixPair};

use crate::pages_folder::segment_file;

/// A CPU's pages of a generation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) cpu: u32,
    /// The number in its file's name: that of the generation in which it began.
    pub(crate) number: u64,
    /// Size of its file; 0: no file.
    pub(crate) bytes: u64,
    /// Bytes of pages that did not fit on the disk.
    pub(crate) unwritten: u64,
    /// The kernel's counts before its first event: all earlier events are in the previous segment.
    pub(crate) begin: CpuStats,
    /// The counts at the last event that is certainly in it.
    pub(crate) end: CpuStats,
    /// The counts when all events were in its file: the begin of the next segment.
    pub(crate) next: CpuStats,
}

impl Segment {
    pub(crate) fn file(&self) -> String {
        segment_file(self.cpu, self.number)
    }
}

/// Readings at the begin or end of a generation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) at: Instant,
    pub(crate) unix_ns: u64,
    /// The trace clock together with Unix time; `None` if it can't be read.
    pub(crate) clocks: Option<UnixPair>,
    /// This process's CPU time so far.
    pub(crate) own_cpu_ns: u64,
}

/// Segments of all CPUs of an interval.
#[derive(Clone, Debug)]
pub(crate) struct Generation {
    pub(crate) number: u64,
    pub(crate) begin: Edge,
    pub(crate) segments: Vec<Segment>,
}

impl Generation {
    /// Size of its files.
    pub(crate) fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum()
    }
}
