//! Merges the events of all streams in time order.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use rustc_hash::FxHashMap;

use super::batch::TraceEventBatch;
use super::{Gap, TraceEvent, TraceEventPass, TraceEventSink};
use crate::Losses;
use crate::rounds::{Consume, Input, Lanes, in_order};
use crate::stamps::StreamStamps;

/// The next item of a lane.
#[derive(Clone, Copy, Debug)]
enum Next<'b> {
    Gap(&'b Gap),
    Event(&'b TraceEvent),
}

impl Next<'_> {
    const fn stamp_ns(self) -> u64 {
        match self {
            Self::Gap(gap) => gap.from_ns,
            Self::Event(event) => event.stamp_ns,
        }
    }
}

/// Batches of a stream that have not been emitted completely.
#[derive(Debug, Default)]
struct StreamQueue {
    batches: VecDeque<TraceEventBatch>,
    /// Numbers of emitted events and gaps of the first batch.
    given: usize,
    gaps_given: usize,
    /// Index of the recording, and of the buffer and CPU within it.
    recording: u16,
    buffer: usize,
    cpu: u16,
    /// End time of the batches so far.
    reached_ns: u64,
    stamps: StreamStamps,
    /// The last batch ended in a loss.
    open_gap: bool,
}

impl StreamQueue {
    /// The next item of the first batch.
    fn next(&self) -> Option<Next<'_>> {
        let batch = self.batches.front()?;
        let gap = batch.gaps.get(self.gaps_given).filter(|(before, _)| *before <= self.given);
        match gap {
            Some((_, gap)) => Some(Next::Gap(gap)),
            None => batch.events.get(self.given).map(Next::Event),
        }
    }

    /// Pending events of the first batch before its next gap.
    fn up_to_gap(&self) -> &[TraceEvent] {
        let Some(batch) = self.batches.front() else { return &[] };
        let gap = batch.gaps.get(self.gaps_given).map_or(usize::MAX, |(before, _)| *before);
        let end = gap.min(batch.events.len());
        batch.events.get(self.given..end).unwrap_or(&[])
    }

    /// Emits the first batch's items before `until_ns`, and at least one. If several buffers have
    /// the same event, only one of them is the source.
    fn give(
        &mut self,
        until_ns: u64,
        mut sources: Option<&mut EventSources>,
        sink: &mut impl TraceEventSink,
    ) {
        // The first item is emitted regardless of its time.
        let mut due_ns = u64::MAX;
        while let Some(next) = self.next().filter(|next| next.stamp_ns() < due_ns) {
            if let Next::Gap(gap) = next {
                sink.gap(gap);
                self.gaps_given += 1;
                due_ns = until_ns;
                continue;
            }
            let mut given = 0;
            for event in self.up_to_gap() {
                if event.stamp_ns >= due_ns {
                    break;
                }
                let sources = sources.as_deref_mut();
                if sources.is_none_or(|sources| is_source(sources, self.buffer, event)) {
                    sink.event(event);
                }
                given += 1;
                due_ns = until_ns;
            }
            self.given += given;
        }
    }

    fn release(&mut self, spent: &mut Vec<TraceEventBatch>) {
        let is_done = |batch: &TraceEventBatch, given, gaps_given| {
            given >= batch.events.len() && gaps_given >= batch.gaps.len()
        };
        while self.batches.front().is_some_and(|batch| is_done(batch, self.given, self.gaps_given))
        {
            spent.extend(self.batches.pop_front());
            (self.given, self.gaps_given) = (0, 0);
        }
    }
}

/// The source buffer of a thread's events, by recording, thread and tag.
type EventSources = FxHashMap<(u16, u32, u16), usize>;

/// Pending events of all streams.
#[derive(Debug)]
pub(crate) struct StreamQueues {
    lanes: Vec<StreamQueue>,
    /// By recording: whether it has several buffers.
    several: Vec<bool>,
    sources: EventSources,
    pass: TraceEventPass,
}

impl StreamQueues {
    pub(crate) fn new(inputs: &[Input<'_>], owners: &[u16], pass: TraceEventPass) -> Self {
        let lane = |(input, &recording): (&Input<'_>, &u16)| StreamQueue {
            recording,
            buffer: input.stream.buffer(),
            cpu: u16::try_from(input.stream.cpu()).unwrap_or(u16::MAX),
            ..StreamQueue::default()
        };
        let lanes: Vec<StreamQueue> = inputs.iter().zip(owners).map(lane).collect();
        let several = (0u16..)
            .zip(&pass.losses)
            .map(|(recording, _)| {
                let mut buffers = lanes.iter().filter(|lane| lane.recording == recording);
                let first = buffers.next().map(|lane| lane.buffer);
                buffers.any(|lane| Some(lane.buffer) != first)
            })
            .collect();
        Self { lanes, several, sources: EventSources::default(), pass }
    }

    /// The result of the pass, after emitting losses at the end of streams.
    pub(crate) fn finish(mut self, sink: &mut impl TraceEventSink) -> TraceEventPass {
        self.pass.losses.iter_mut().for_each(Losses::finish);
        for lane in self.lanes.iter().filter(|lane| lane.open_gap) {
            let (recording, cpu, from_ns) = (lane.recording, lane.cpu, lane.reached_ns);
            sink.gap(&Gap { recording, cpu, from_ns, to_ns: u64::MAX });
        }
        self.pass
    }

    /// Emits everything before `horizon_ns` stream by stream, to a sink that needs no order across
    /// CPUs. Consumed batches go to `spent`.
    pub(crate) fn give_by_stream(
        &mut self,
        horizon_ns: u64,
        spent: &mut Vec<TraceEventBatch>,
        sink: &mut impl TraceEventSink,
    ) {
        let Self { lanes, several, sources, .. } = self;
        for lane in lanes {
            let several = several.get(usize::from(lane.recording)) == Some(&true);
            lane.release(spent);
            while lane.next().is_some_and(|next| next.stamp_ns() < horizon_ns) {
                lane.give(horizon_ns, several.then_some(&mut *sources), sink);
                lane.release(spent);
            }
        }
    }
}

/// Whether `buffer` is the source of the thread's events of this kind.
fn is_source(sources: &mut EventSources, buffer: usize, event: &TraceEvent) -> bool {
    *sources.entry((event.recording, event.thread, event.tag)).or_insert(buffer) == buffer
}

/// Emits events to the sink in time order.
pub(crate) struct Merger<'s, S> {
    queues: StreamQueues,
    sink: &'s mut S,
}

impl<'s, S: TraceEventSink> Merger<'s, S> {
    pub(crate) fn new(
        inputs: &[Input<'_>],
        owners: &[u16],
        pass: TraceEventPass,
        sink: &'s mut S,
    ) -> Self {
        Self { queues: StreamQueues::new(inputs, owners, pass), sink }
    }

    /// The result of the pass, after emitting losses at the end of streams.
    pub(crate) fn finish(self) -> TraceEventPass {
        self.queues.finish(self.sink)
    }
}

impl<S: TraceEventSink> Lanes<TraceEventBatch> for Merger<'_, S> {
    fn count(&self) -> usize {
        self.queues.lanes.len()
    }

    fn next_stamp_ns(&self, lane: usize) -> Option<u64> {
        Some(self.queues.lanes.get(lane)?.next()?.stamp_ns())
    }

    fn release(&mut self, lane: usize, spent: &mut Vec<TraceEventBatch>) {
        if let Some(lane) = self.queues.lanes.get_mut(lane) {
            lane.release(spent);
        }
    }

    fn give(&mut self, lane: usize, until_ns: u64) -> ControlFlow<()> {
        let StreamQueues { lanes, several, sources, .. } = &mut self.queues;
        if let Some(lane) = lanes.get_mut(lane) {
            let several = several.get(usize::from(lane.recording)) == Some(&true);
            lane.give(until_ns, several.then_some(sources), self.sink);
        }
        ControlFlow::Continue(())
    }
}

impl<S: TraceEventSink> Consume<TraceEventBatch> for Merger<'_, S> {
    fn take(&mut self, input: usize, batch: TraceEventBatch) {
        self.queues.take(input, batch);
    }

    fn advance(&mut self, horizon_ns: u64, spent: &mut Vec<TraceEventBatch>) -> ControlFlow<()> {
        in_order(self, horizon_ns, spent)
    }
}

impl StreamQueues {
    /// The next batch of an input.
    pub(crate) fn take(&mut self, input: usize, mut batch: TraceEventBatch) {
        let Some(lane) = self.lanes.get_mut(input) else { return };
        let recording = usize::from(lane.recording);
        if let Some(step) = lane.stamps.block(lane.cpu.into(), &batch.stamps) {
            batch.begin_at(lane.recording, lane.cpu, lane.reached_ns);
            batch.losses.damage.extend(step);
        }
        if let Some(losses) = self.pass.losses.get_mut(recording) {
            losses.merge(std::mem::take(&mut batch.losses), lane.cpu.into(), lane.buffer);
        }
        if let Some(names) = self.pass.names.get_mut(recording) {
            batch.names.iter().for_each(|named| names.set(&named));
        }
        if let (Some(first_ns), Some(last_ns)) = (batch.first_ns, batch.last_ns) {
            if let Some(span_ns) = self.pass.spans_ns.get_mut(recording) {
                let (from_ns, to_ns) = span_ns.unwrap_or((first_ns, last_ns));
                *span_ns = Some((from_ns.min(first_ns), to_ns.max(last_ns)));
            }
            lane.join_gap(&mut batch, first_ns);
            lane.reached_ns = lane.reached_ns.max(last_ns);
        }
        lane.open_gap |= batch.tail_gap;
        lane.batches.push_back(batch);
    }
}

impl StreamQueue {
    /// Adds a gap between this lane's last batch and the next one if events were lost there.
    fn join_gap(&mut self, batch: &mut TraceEventBatch, first_ns: u64) {
        let from_ns = self.reached_ns;
        if let Some((0, gap)) = batch.gaps.first_mut()
            && gap.from_ns == 0
        {
            gap.from_ns = from_ns;
        } else if self.open_gap {
            let (recording, cpu) = (self.recording, self.cpu);
            batch.gaps.insert(0, (0, Gap { recording, cpu, from_ns, to_ns: first_ns }));
        }
        self.open_gap = false;
    }
}
