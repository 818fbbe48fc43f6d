//! Collects hypercalls with BPF programs while the host is recorded.

use bpf::collector::{Collected, Collector, CollectorPlan, Loaded};
use os::folder::Folder;
use printable::with_causes;
use session_json::CollectorSummary;

use crate::error::RecordError;
use crate::task::EndingTask;

/// Which hypercalls to collect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hypercalls {
    /// The hypercall number of frames; marks have the next one.
    pub number: u64,
    /// Registers of each hypercall: 4 to 13.
    pub words: u8,
}

pub(crate) const FILE: &str = "host.collected";

/// Loads the programs, before the recording begins.
pub(crate) fn load(what: Hypercalls, clock: &str, trace_id: u64) -> crate::error::Result<Loaded> {
    let Hypercalls { number, words } = what;
    Ok(Loaded::load(CollectorPlan { clock: clock.to_owned(), trace_id, number, words })?)
}

/// Starts collecting into the session's folder.
pub(crate) fn begin(loaded: Loaded, session: &Folder) -> crate::error::Result<Collector> {
    let file = session.create_new(FILE);
    let file = file.map_err(RecordError::io("make", &session.path().join(FILE)))?;
    Ok(loaded.begin(file)?)
}

/// Removes the file of a recording that did not begin.
pub(crate) fn forget(session: &Folder) {
    let _ = session.remove(FILE);
}

pub(crate) fn end(collector: Collector) -> EndingTask<CollectorSummary> {
    EndingTask::begin("collected", move || match collector.end() {
        Ok(collected) => Ok(summary(&collected)),
        Err(error) => Err(with_causes(&error)),
    })
}

fn summary(collected: &Collected) -> CollectorSummary {
    let counts = &collected.counts;
    CollectorSummary {
        file: FILE.to_owned(),
        bytes: collected.bytes,
        hypercalls: collected.written,
        ring_full: counts.ring_full,
        no_exit: counts.no_exit,
        no_room: counts.no_room,
        unreadable: counts.unreadable,
    }
}
