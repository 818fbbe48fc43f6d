//! Puts the moments of all streams in the order of their times.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::ControlFlow;

use rustc_hash::FxHashMap;

use super::decode::MomentBatch;
use super::{Gap, Moment, MomentPass, MomentSink};
use crate::rounds::{Consume, Input};

/// Batches of one stream that have not been given to the sink yet.
#[derive(Debug, Default)]
struct Lane {
    batches: VecDeque<MomentBatch>,
    /// Moments and gaps of the first batch that have been given.
    given: usize,
    gaps_given: usize,
    /// Number of the recording, and of the buffer and CPU within it.
    recording: u16,
    buffer: usize,
    cpu: u16,
    /// How far the batches taken go.
    reached_ns: u64,
    /// The last batch ended in a loss.
    open_gap: bool,
}

impl Lane {
    fn next_stamp(&self) -> Option<u64> {
        let batch = self.batches.front()?;
        let moment = batch.moments.get(self.given).map(|moment| moment.stamp_ns);
        let gap = batch.gaps.get(self.gaps_given);
        let gap = gap.filter(|(before, _)| *before <= self.given).map(|(_, gap)| gap.from_ns);
        gap.or(moment)
    }

    fn release(&mut self, spent: &mut Vec<MomentBatch>) {
        let is_done = |batch: &MomentBatch, given, gaps_given| {
            given >= batch.moments.len() && gaps_given >= batch.gaps.len()
        };
        while self.batches.front().is_some_and(|one| is_done(one, self.given, self.gaps_given)) {
            spent.extend(self.batches.pop_front());
            (self.given, self.gaps_given) = (0, 0);
        }
    }
}

/// Of which buffer a thread's events are taken: by recording, thread and tag.
type Givers = FxHashMap<(u16, u32, u16), usize>;

/// Gives moments to the sink in the order of their times.
pub(super) struct Merger<'s, S> {
    lanes: Vec<Lane>,
    /// By recording: whether it has several buffers.
    several: Vec<bool>,
    givers: Givers,
    pass: MomentPass,
    sink: &'s mut S,
}

impl<'s, S: MomentSink> Merger<'s, S> {
    pub(super) fn new(
        inputs: &[Input<'_>],
        owners: &[u16],
        pass: MomentPass,
        sink: &'s mut S,
    ) -> Self {
        let lane = |(input, &recording): (&Input<'_>, &u16)| Lane {
            recording,
            buffer: input.stream.buffer(),
            cpu: u16::try_from(input.stream.cpu()).unwrap_or(u16::MAX),
            ..Lane::default()
        };
        let lanes: Vec<Lane> = inputs.iter().zip(owners).map(lane).collect();
        let several = (0u16..)
            .zip(&pass.losses)
            .map(|(recording, _)| {
                let mut buffers = lanes.iter().filter(|lane| lane.recording == recording);
                let first = buffers.next().map(|lane| lane.buffer);
                buffers.any(|lane| Some(lane.buffer) != first)
            })
            .collect();
        Self { lanes, several, givers: Givers::default(), pass, sink }
    }

    /// What the pass leaves, after losses at the very end have been told.
    pub(super) fn finish(self) -> MomentPass {
        for lane in self.lanes.iter().filter(|lane| lane.open_gap) {
            let (recording, cpu, from_ns) = (lane.recording, lane.cpu, lane.reached_ns);
            self.sink.gap(&Gap { recording, cpu, from_ns, to_ns: u64::MAX });
        }
        self.pass
    }

    /// Gives moments of a lane whose times lie below `until_ns`, and at least one.
    fn give(&mut self, at: usize, until_ns: u64) {
        let Some(lane) = self.lanes.get_mut(at) else { return };
        let Some(batch) = lane.batches.front() else { return };
        let several = self.several.get(usize::from(lane.recording)) == Some(&true);
        // Stamps of a damaged page may go back: one is taken anyhow, so that it always goes on.
        let mut first = true;
        loop {
            let gap = batch.gaps.get(lane.gaps_given);
            if let Some((_, gap)) = gap.filter(|(before, _)| *before <= lane.given) {
                if gap.from_ns >= until_ns && !first {
                    return;
                }
                self.sink.gap(gap);
                lane.gaps_given += 1;
            } else if let Some(moment) = batch.moments.get(lane.given) {
                if moment.stamp_ns >= until_ns && !first {
                    return;
                }
                if !several || gives(&mut self.givers, lane.buffer, moment) {
                    self.sink.moment(moment);
                }
                lane.given += 1;
            } else {
                return;
            }
            first = false;
        }
    }
}

/// Whether `buffer` is the one that the thread's events of this kind are taken from.
fn gives(givers: &mut Givers, buffer: usize, moment: &Moment) -> bool {
    *givers.entry((moment.recording, moment.thread, moment.tag)).or_insert(buffer) == buffer
}

impl<S: MomentSink> Consume<MomentBatch> for Merger<'_, S> {
    fn take(&mut self, input: usize, mut batch: MomentBatch) {
        let Some(lane) = self.lanes.get_mut(input) else { return };
        let recording = usize::from(lane.recording);
        if let Some(losses) = self.pass.losses.get_mut(recording) {
            losses.events_lost = losses.events_lost.saturating_add(batch.events_lost);
            losses.uncounted_losses += batch.uncounted_losses;
            losses.records += batch.records;
            losses.damage.extend(batch.damage.drain(..));
        }
        if let Some(names) = self.pass.names.get_mut(recording) {
            batch.names.iter().for_each(|(thread, comm)| names.tell(*thread, comm));
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

    fn advance(&mut self, horizon_ns: u64, spent: &mut Vec<MomentBatch>) -> ControlFlow<()> {
        self.lanes.iter_mut().for_each(|lane| lane.release(spent));
        let due = |lane: &Lane, at: usize| {
            let stamp_ns = lane.next_stamp().filter(|&stamp_ns| stamp_ns < horizon_ns)?;
            Some(Reverse((stamp_ns, at)))
        };
        let lanes = self.lanes.iter().enumerate();
        let mut heap: BinaryHeap<_> = lanes.filter_map(|(at, lane)| due(lane, at)).collect();
        while let Some(Reverse((stamp_ns, at))) = heap.pop() {
            // At equal times the lower lane goes first, and this one was the lowest.
            let next_ns = heap.peek().map_or(horizon_ns, |Reverse((next_ns, _))| *next_ns);
            self.give(at, next_ns.max(stamp_ns.saturating_add(1)));
            if let Some(lane) = self.lanes.get_mut(at) {
                lane.release(spent);
                heap.extend(due(lane, at));
            }
        }
        ControlFlow::Continue(())
    }
}

impl Lane {
    /// Puts a loss between this lane's last batch and the next one, where there was one.
    fn join_gap(&mut self, batch: &mut MomentBatch, first_ns: u64) {
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
