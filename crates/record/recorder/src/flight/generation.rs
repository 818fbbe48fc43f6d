//! A stretch of time of the pages that are kept: a segment of each CPU.

use std::time::Instant;

use tracefs::{CpuStats, UnixPair};

use crate::pages_folder::segment_file;

/// What one CPU recorded in a generation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) cpu: u32,
    /// The number in its file's name: that of the generation in which it began.
    pub(crate) number: u64,
    /// Bytes of its file; 0: there is none.
    pub(crate) bytes: u64,
    /// Bytes of pages that the disk had no room for.
    pub(crate) unwritten: u64,
    /// The kernel's counts when its first event may have come: all before it are in the segment before.
    pub(crate) begin: CpuStats,
    /// The same when the last event that is surely in it had come.
    pub(crate) end: CpuStats,
    /// The same when all that came was in its file: the begin of the next.
    pub(crate) next: CpuStats,
}

impl Segment {
    /// The name of its file.
    pub(crate) fn file(&self) -> String {
        segment_file(self.cpu, self.number)
    }
}

/// What was known at a moment: the begin of a generation, or its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) at: Instant,
    pub(crate) unix_ns: u64,
    /// The trace clock then; none: it can't be read.
    pub(crate) clocks: Option<UnixPair>,
    /// CPU time that this process had had by then.
    pub(crate) own_cpu_ns: u64,
}

/// Segments of all CPUs of one stretch of time.
#[derive(Clone, Debug)]
pub(crate) struct Generation {
    pub(crate) number: u64,
    pub(crate) begin: Edge,
    pub(crate) segments: Vec<Segment>,
}

impl Generation {
    /// Bytes in its files.
    pub(crate) fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum()
    }
}
