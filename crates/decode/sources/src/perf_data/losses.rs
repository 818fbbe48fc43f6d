//! Records about missing events: their number, CPU and time.
//!
//! The kernel writes LOST to a CPU's buffer when there is room again: the loss happened right
//! before. Since version 6.1, perf reads the number of lost samples of each event, and writes
//! LOST_SAMPLES without a time at the end: those that no LOST record counted were lost after the
//! last record of their CPU.

use std::collections::{BTreeMap, HashMap};

use perfdata::{
    Body, Event, Events, Form, IdIndexEntries, PerfData, Record, SampleId, Throttle, read_format,
};

/// The position of a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LossAt {
    pub(super) cpu: u32,
    pub(super) time_ns: u64,
    /// Number of lost records; `None` if unknown.
    pub(super) count: Option<u64>,
}

/// The losses so far.
#[derive(Debug, Default)]
pub(super) struct Losses {
    /// CPUs by the ids of the events that run on them.
    cpus: HashMap<u64, u32>,
    /// By CPU: records counted by LOST, and samples counted by LOST_SAMPLES without a time.
    counts: BTreeMap<u32, Counts>,
    /// Lost records on unknown CPUs.
    pub(super) nowhere: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    placed: u64,
    without_time: u64,
}

impl Losses {
    /// Adds the CPUs of event ids.
    pub(super) fn index(&mut self, entries: &IdIndexEntries<'_>) {
        let known = entries.iter().filter_map(|entry| {
            let cpu = u32::try_from(entry.cpu).ok().filter(|_| entry.guest.is_none())?;
            Some((entry.id, cpu))
        });
        self.cpus.extend(known);
    }

    /// The loss that a record reports; `None` if it reports none, or one without a position yet.
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
        // A record without a time comes from perf itself, and has only the id.
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

    /// A tracepoint is throttled if it occurs too often; throttling of other samples is not a loss
    /// here.
    fn throttled(&self, events: &Events, at: &Throttle, whose: SampleId) -> Option<LossAt> {
        let index = events.index_of_id(at.id).or_else(|| events.index_of_id(at.stream_id))?;
        let is_tracepoint = events.list().get(index)?.attr.is_tracepoint();
        let cpu = whose.cpu.or_else(|| self.cpus.get(&at.stream_id).copied())?;
        is_tracepoint.then_some(LossAt { cpu, time_ns: at.time, count: None })
    }

    /// All losses on a CPU.
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

/// Whether the losses in a file are complete: perf read the number of lost samples of each
/// tracepoint, and finished the file. If perf switches files (`--switch-output`), only the last
/// file has these numbers.
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
