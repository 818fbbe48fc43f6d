//! Records about missing events: how many, on which CPU, when.
//!
//! The kernel writes LOST into a CPU's buffer when there is room again: what is missing came right before.
//! A perf since 6.1 asks for the samples that each event lost, and writes LOST_SAMPLES without a time at
//! the end: those among them that no LOST has counted were lost after the last record of their CPU.

use std::collections::{BTreeMap, HashMap};

use perfdata::{
    Body, Event, Events, Form, IdIndexEntries, PerfData, Record, SampleId, Throttle, read_format,
};

/// Where a loss is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LossAt {
    pub(super) cpu: u32,
    pub(super) time_ns: u64,
    /// How many records; `None`: that isn't said.
    pub(super) count: Option<u64>,
}

/// The losses known so far.
#[derive(Debug, Default)]
pub(super) struct Losses {
    /// CPUs by the ids of events that count on them.
    cpus: HashMap<u64, u32>,
    /// By CPU, records that LOST counted, and samples that LOST_SAMPLES without a time did.
    counts: BTreeMap<u32, Counts>,
    /// Lost records of which no CPU is known.
    pub(super) nowhere: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    placed: u64,
    without_time: u64,
}

impl Losses {
    /// Ids and their CPUs.
    pub(super) fn index(&mut self, entries: &IdIndexEntries<'_>) {
        let known = entries.iter().filter_map(|entry| {
            let cpu = u32::try_from(entry.cpu).ok().filter(|_| entry.guest.is_none())?;
            Some((entry.id, cpu))
        });
        self.cpus.extend(known);
    }

    /// What a record says of losses, if it does; `None` also if that has no place yet.
    pub(super) fn loss_in(
        &mut self,
        events: &Events,
        record: &Record<'_>,
        body: &Body<'_>,
    ) -> Option<LossAt> {
        let whose = events.sample_id(record).unwrap_or_default();
        match body {
            Body::Lost(lost) => self.lost(lost.id, lost.count, whose),
            Body::LostSamples(lost) => self.lost(None, lost.count, whose),
            Body::Throttle(at) | Body::Unthrottle(at) => self.throttled(events, at, whose),
            _ => None,
        }
    }

    fn lost(&mut self, id: Option<u64>, count: u64, whose: SampleId) -> Option<LossAt> {
        let id = id.or(whose.id);
        let time_ns = whose.time.filter(|&time| time > 0);
        // Without a time perf wrote it, which knows nothing but the id.
        let by_id = id.and_then(|id| self.cpus.get(&id)).copied();
        let cpu = if time_ns.is_some() { whose.cpu.or(by_id) } else { by_id };
        let Some(cpu) = cpu else {
            self.nowhere = self.nowhere.saturating_add(count);
            return None;
        };
        let counts = self.counts.entry(cpu).or_default();
        let Some(time_ns) = time_ns else {
            counts.without_time = counts.without_time.saturating_add(count);
            return None;
        };
        counts.placed = counts.placed.saturating_add(count);
        Some(LossAt { cpu, time_ns, count: Some(count) })
    }

    /// A tracepoint that came too often is held back for a while; that of other samples is no loss here.
    fn throttled(&self, events: &Events, at: &Throttle, whose: SampleId) -> Option<LossAt> {
        let index = events.index_of_id(at.id).or_else(|| events.index_of_id(at.stream_id))?;
        let is_tracepoint = events.list().get(index)?.attr.is_tracepoint();
        let cpu = whose.cpu.or_else(|| self.cpus.get(&at.stream_id).copied())?;
        is_tracepoint.then_some(LossAt { cpu, time_ns: at.time, count: None })
    }

    /// All that was lost on a CPU.
    pub(super) fn on(&self, cpu: u32) -> u64 {
        self.counts.get(&cpu).map_or(0, |counts| counts.placed.max(counts.without_time))
    }

    /// Events lost after the last record of a CPU, by CPU.
    pub(super) fn at_the_end(&self) -> impl Iterator<Item = (u32, u64)> + use<'_> {
        self.counts.iter().filter_map(|(&cpu, counts)| {
            let rest = counts.without_time.saturating_sub(counts.placed);
            (rest > 0).then_some((cpu, rest))
        })
    }
}

/// Whether a file has all that was lost: perf asked for the samples that each tracepoint lost, and wrote its
/// file to the end. Of files that perf changes while it records (`--switch-output`), only the last has it.
pub(super) fn are_counted(perf: &PerfData) -> bool {
    let arguments = &perf.features.command;
    let is_one_of_several = arguments.iter().any(|argument| {
        ["--switch-output", "--overwrite"].iter().any(|option| argument.starts_with(option))
    });
    let asks = |event: &Event| event.attr.read_format & read_format::LOST != 0;
    let mut tracepoints = perf.events.list().iter().filter(|event| event.attr.is_tracepoint());
    let is_complete = perf.form == Form::File && perf.damage.is_empty();
    is_complete && !arguments.is_empty() && !is_one_of_several && tracepoints.all(asks)
}
