//! Hypercalls that BPF programs collect while the host is recorded.

use channel::{Deadline, Wait};
use collector::{CollectError, Collected, Collector, CollectorPlan, Loaded};
use confine::Confined;
use folder::Folder;
use serde::Serialize;

use crate::error::{RecordError, with_causes};
use crate::task::{Outcome, Task};

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

/// A collector that was asked to end.
#[derive(Debug)]
pub(crate) struct EndingCollector(std::io::Result<Task<Result<Collected, CollectError>>>);

impl EndingCollector {
    /// Asks it to end.
    pub(crate) fn begin(collector: Collector) -> Self {
        Self::ended_by(move || collector.end())
    }

    fn ended_by(end: impl FnOnce() -> Result<Collected, CollectError> + Send + 'static) -> Self {
        Self(Task::spawn("collected".into(), Confined::WORKER, end))
    }

    /// Whether it has ended, waiting for that until then.
    pub(crate) fn is_over(&self, until: Deadline) -> bool {
        self.0.as_ref().map_or(true, |task| task.is_over(Wait::until(until)))
    }

    /// What came of it, waiting for that no longer than this; what went wrong is among the faults.
    pub(crate) fn end(self, until: Deadline, faults: &mut Vec<String>) -> Option<CollectorSummary> {
        let why = match self.0.map(|task| task.end(Wait::until(until))) {
            Ok(Outcome::Done(Ok(collected))) => return Some(summary(&collected)),
            Ok(Outcome::Done(Err(error))) => with_causes(&error),
            Ok(Outcome::Panicked) => "the thread that ends it panicked".into(),
            Ok(Outcome::StillBusy) => "its thread did not end in time, and is left alone".into(),
            Err(error) => error.to_string(),
        };
        faults.push(format!("hypercalls were not collected to the end: {why}"));
        None
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    use channel::Signal;

    #[test]
    fn nobody_waits_for_a_collector_that_does_not_end() {
        let (begun, busy) = (Instant::now(), Signal::new().unwrap());
        let held = busy.clone();
        let collector = EndingCollector::ended_by(move || {
            held.wait(Duration::from_secs(600));
            Err(CollectError::Panicked)
        });
        let soon = Deadline::after(Duration::from_millis(50));
        assert!(!collector.is_over(soon));
        let mut faults = Vec::new();
        assert_eq!(collector.end(soon, &mut faults), None);
        assert!(begun.elapsed() < Duration::from_secs(60));
        assert!(faults[0].contains("did not end in time"), "{faults:?}");
        busy.give();
    }
}
