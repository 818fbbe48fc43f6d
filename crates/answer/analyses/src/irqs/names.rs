//! Names in rows of handlers.

use ::sources::Recording;
use timeline::NumberedNames;
use timeline::trace_events::ThreadNames;

use super::sources::{Sources, softirq_name};
use super::sums::{HandlerSums, Key};
use super::{By, HandlerKind, HandlerRow};

pub(super) struct Names<'n> {
    pub(super) recordings: &'n [Recording],
    pub(super) sources: &'n Sources,
    /// Names of devices' interrupts.
    pub(super) irqs: &'n NumberedNames,
    /// Thread names by recording.
    pub(super) threads: &'n [ThreadNames],
}

impl Names<'_> {
    /// Builds a row with names.
    pub(super) fn row(&self, by: By, key: Key, sums: HandlerSums) -> HandlerRow {
        let kind = self.sources.kind(key.source).0;
        let recording = usize::from(key.recording);
        HandlerRow {
            recording,
            kind,
            number: matches!(kind, HandlerKind::Irq | HandlerKind::Softirq).then_some(key.number),
            name: self.handler(&key),
            cpu: key.part.filter(|_| by == By::Cpu),
            thread: key.part.filter(|_| by == By::Thread).map(|id| self.thread(recording, id)),
            sums,
        }
    }

    fn handler(&self, key: &Key) -> Option<String> {
        match self.sources.kind(key.source) {
            (HandlerKind::Irq, _) => self.irqs.get(&(key.recording.into(), key.number)).cloned(),
            (HandlerKind::Softirq, _) => softirq_name(key.number).map(str::to_owned),
            (_, name) => name.map(str::to_owned),
        }
    }

    fn thread(&self, recording: usize, id: u32) -> (u32, Option<String>) {
        if id == 0 {
            return (id, Some("idle".to_owned()));
        }
        let of_events = self.threads.get(recording).and_then(|names| names.get(id));
        let name = of_events.or_else(|| self.recordings.get(recording)?.comm(id));
        (id, name.map(str::to_owned))
    }
}
