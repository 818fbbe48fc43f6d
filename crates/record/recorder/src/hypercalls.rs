//! Hypercalls that BPF programs collect while the host is recorded.

use bpf::collector::{Collected, Collector, CollectorPlan, Loaded};
use os::folder::Folder;
use printable::with_causes;
use serde::Serialize;

use crate::error::RecordError;
use crate::task::EndingTask;

/// Which hypercalls are collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hypercalls {
    /// The number of those with frames; marks have the next one.
    pub number: u64,
    /// Registers of each: 4 to 13.
    pub words: u8,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CollectorSummary {
    /// The file.
    pub file: &'static str,
    /// Its bytes.
    pub bytes: u64,
    /// Hypercalls in it.
    pub hypercalls: u64,
    /// Those that the ring between kernel and recorder had no room for.
    pub ring_full: u64,
    /// Those whose exit was before the collector came.
    pub no_exit: u64,
    /// Exits of vCPUs that there was no room for.
    pub no_room: u64,
    /// Those whose registers couldn't be read.
    pub unreadable: u64,
}

impl CollectorSummary {
    /// Hypercalls that are known to be missing.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.ring_full.saturating_add(self.no_exit).saturating_add(self.unreadable)
    }
}

/// The file's name.
pub(crate) const FILE: &str = "host.collected";

/// Loads what collects, before anything is recorded.
pub(crate) fn load(what: Hypercalls, clock: &str, trace_id: u64) -> crate::error::Result<Loaded> {
    let Hypercalls { number, words } = what;
    Ok(Loaded::load(CollectorPlan { clock: clock.to_owned(), trace_id, number, words })?)
}

/// Begins to collect, into the session's folder.
pub(crate) fn begin(loaded: Loaded, session: &Folder) -> crate::error::Result<Collector> {
    let file = session.create_new(FILE);
    let file = file.map_err(RecordError::io("make", &session.path().join(FILE)))?;
    Ok(loaded.begin(file)?)
}

/// Removes what was written, of a recording that did not begin.
pub(crate) fn forget(session: &Folder) {
    let _ = session.remove(FILE);
}

/// Has a collector end.
pub(crate) fn end(collector: Collector) -> EndingTask<CollectorSummary> {
    EndingTask::begin("collected", move || match collector.end() {
        Ok(collected) => Ok(summary(&collected)),
        Err(error) => Err(with_causes(&error)),
    })
}

fn summary(collected: &Collected) -> CollectorSummary {
    let counts = &collected.counts;
    CollectorSummary {
        file: FILE,
        bytes: collected.bytes,
        hypercalls: collected.written,
        ring_full: counts.ring_full,
        no_exit: counts.no_exit,
        no_room: counts.no_room,
        unreadable: counts.unreadable,
    }
}
