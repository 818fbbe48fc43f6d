//! From per-CPU streams to per-thread sequences: no global merge.
//!
//! Within a stream, events of one thread come in runs. The runs of a thread from all streams, put
//! in order of their first stamp, are its history; only where runs overlap in time (a thread woken
//! by another CPU, or moved without a recorded switch) are they merged event by event.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use rustc_hash::FxHashMap;
use sources::{Damage, Recording};

use crate::buffers::Buffers;
use crate::gaps::Gaps;
use crate::losses::Losses;
use crate::rounds::{Batch, Consume, Input};
use crate::stamps::StreamStamps;
use crate::thread_batch::{Run, ThreadBatch};
use crate::thread_event::{Kind, KindSet, ThreadEvent};
use crate::vcpus::Vcpus;

/// The receiver of the events of vCPU threads.
pub(crate) trait Follow {
    /// Receives the next events of a thread, in time order.
    fn feed(&mut self, thread: u32, events: &[ThreadEvent]);

    /// The vCPUs; vCPUs that are still unknown may need earlier losses.
    fn vcpus(&mut self) -> &mut Vcpus;
}

/// The result after all threads have been fed.
#[derive(Debug)]
pub(crate) struct Fed<F> {
    pub(crate) follower: F,
    pub(crate) seen: KindSet,
    pub(crate) losses: Losses,
    /// Names of buffers whose exits were skipped because another buffer has them, too.
    pub(crate) repeated_buffers: Vec<String>,
}

/// Batches of a stream that have not been consumed completely.
#[derive(Debug, Default)]
struct Lane {
    batches: VecDeque<ThreadBatch>,
    /// Number of consumed events of the first batch.
    used: usize,
    last_ns: Option<u64>,
    stamps: StreamStamps,
    cpu: u32,
    buffer: usize,
    tail_gap: bool,
    /// Blocks of the stream that have not arrived.
    blocks_left: usize,
    /// Pages are missing after the last block.
    cut: bool,
}

impl Lane {
    fn new(number: u16, input: Input<'_>) -> Self {
        let (blocks_left, cut) = (input.stream.block_count(), input.stream.is_cut());
        let (cpu, buffer) = (input.stream.cpu(), input.stream.buffer());
        let mut lane = Self { blocks_left, cut, cpu, buffer, ..Self::default() };
        if cut && blocks_left == 0 {
            let mut batch = ThreadBatch::default();
            batch.events.push(ThreadEvent::lost(number, 0, u64::MAX));
            lane.batches.push_back(batch);
        }
        lane
    }

    /// Ensures that a batch begins no earlier than the previous one ended; returns the damage if
    /// the recording's clock ran back in between.
    fn order(&mut self, number: usize, batch: &mut ThreadBatch) -> Option<Damage> {
        let damage = self.stamps.block(self.cpu, &batch.stamps)?;
        let number = u16::try_from(number).unwrap_or(u16::MAX);
        batch.begin_at(number, self.last_ns.unwrap_or(0));
        damage
    }
}

/// The runs of vCPU threads in a round; reused between rounds for its memory.
///
/// A thread is a vCPU if it enters or exits a guest somewhere in the batches so far: its earlier
/// events, on any stream, belong to its history.
#[derive(Debug)]
struct ThreadRuns {
    /// By the low bits of a thread's id: whether a vCPU thread has these bits. Most runs belong to
    /// other threads, and this check is faster than the map.
    some: [bool; 256],
    places: FxHashMap<u32, usize>,
    threads: Vec<(u32, Vec<Run>)>,
}

impl Default for ThreadRuns {
    fn default() -> Self {
        Self { some: [false; 256], places: FxHashMap::default(), threads: Vec::new() }
    }
}

impl ThreadRuns {
    /// Marks a thread as a vCPU.
    fn add_thread(&mut self, thread: u32) {
        self.some[usize::from(thread as u8)] = true;
        self.places.entry(thread).or_insert_with(|| {
            self.threads.push((thread, Vec::new()));
            self.threads.len() - 1
        });
    }

    /// The collected runs of a thread, if it is a vCPU.
    #[inline]
    fn vcpu_runs(&mut self, thread: u32) -> Option<&mut Vec<Run>> {
        if !self.some[usize::from(thread as u8)] {
            return None;
        }
        let (_, runs) = self.threads.get_mut(*self.places.get(&thread)?)?;
        Some(runs)
    }
}

/// Feeds the vCPU threads of one recording.
#[derive(Debug)]
pub(crate) struct Lanes<F> {
    lanes: Vec<Lane>,
    buffers: Buffers,
    pub(crate) follower: F,
    losses: Losses,
    seen: KindSet,
    runs: ThreadRuns,
    gaps: Gaps,
    merging: Vec<Run>,
    merged: Vec<ThreadEvent>,
    /// The merged events without repetitions, if there are several buffers.
    once: Vec<ThreadEvent>,
}

impl<F: Follow> Lanes<F> {
    pub(crate) fn new(inputs: &[Input<'_>], follower: F, losses: Losses) -> Self {
        Self {
            lanes: inputs
                .iter()
                .zip(0..)
                .map(|(input, number)| Lane::new(number, *input))
                .collect(),
            buffers: Buffers::new(inputs),
            follower,
            losses,
            seen: KindSet::default(),
            runs: ThreadRuns::default(),
            gaps: Gaps::default(),
            merging: Vec::new(),
            merged: Vec::new(),
            once: Vec::new(),
        }
    }

    /// Ends the recording.
    pub(crate) fn finish(self, recording: &Recording) -> Fed<F> {
        let repeated_buffers = self.buffers.repeated(recording);
        let Self { follower, seen, mut losses, .. } = self;
        losses.finish();
        Fed { follower, seen, losses, repeated_buffers }
    }

    /// Sorts the events before `horizon_ns` into runs.
    fn collect_runs(&mut self, horizon_ns: u64) {
        for (lane_at, lane) in self.lanes.iter().enumerate() {
            let mut from = lane.used;
            for (batch_at, batch) in lane.batches.iter().enumerate() {
                let rest = batch.events.get(from..).unwrap_or(&[]);
                let ready = rest.get(..ready_count(rest, horizon_ns)).unwrap_or(&[]);
                let mut to = from;
                for events in ready.chunk_by(|a, b| a.thread == b.thread) {
                    let from = to;
                    to += events.len();
                    let ([first, ..], [.., last]) = (events, events) else { continue };
                    let (first_ns, last_ns) = (first.stamp_ns, last.stamp_ns);
                    let run = Run { lane: lane_at, batch: batch_at, from, to, first_ns, last_ns };
                    if first.kind == Kind::Lost {
                        self.follower.vcpus().note_gaps(events);
                        self.gaps.push(run, events);
                    } else if let Some(runs) = self.runs.vcpu_runs(first.thread) {
                        runs.push(run);
                    }
                }
                if ready.len() < rest.len() {
                    break;
                }
                from = 0;
            }
        }
    }

    /// Passes every thread its runs.
    fn feed(&mut self) {
        let mut threads = std::mem::take(&mut self.runs.threads);
        for (thread, runs) in &mut threads {
            runs.sort_by_key(|run| run.first_ns);
            if self.gaps.is_empty() {
                let mut rest = runs.as_slice();
                while !rest.is_empty() {
                    let (overlapping, later) = rest.split_at(overlapping(rest));
                    self.feed_thread(*thread, overlapping);
                    rest = later;
                }
            } else {
                self.feed_thread(*thread, runs);
            }
            runs.clear();
        }
        self.runs.threads = threads;
        self.gaps.clear();
    }

    /// Passes a thread a single run, or runs that overlap in time.
    fn feed_thread(&mut self, thread: u32, runs: &[Run]) {
        if let ([run], true) = (runs, self.gaps.is_empty() && !self.buffers.are_several()) {
            self.follower.feed(thread, events_of(&self.lanes, run));
            return;
        }
        self.merged.clear();
        self.merging.clear();
        let events = runs.iter().flat_map(|run| events_of(&self.lanes, run));
        self.gaps.needed_with(events, &mut self.merging);
        self.merging.extend(runs);
        // At equal times the order within a stream is kept: events before a loss stay before it.
        self.merging.sort_by_key(|run| (run.lane, run.batch, run.from));
        for run in &self.merging {
            self.merged.extend_from_slice(events_of(&self.lanes, run));
        }
        self.merged.sort_by_key(|event| event.stamp_ns);
        if !self.buffers.are_several() {
            self.follower.feed(thread, &self.merged);
            return;
        }
        self.once.clear();
        let open = self.follower.vcpus().open_gaps();
        self.buffers.once_each(thread, &self.merged, open, &mut self.once);
        self.follower.feed(thread, &self.once);
    }

    /// Returns the consumed batches.
    fn release(&mut self, horizon_ns: u64, spent: &mut Vec<ThreadBatch>) {
        for lane in &mut self.lanes {
            while let Some(batch) = lane.batches.front() {
                let rest = batch.events.get(lane.used..).unwrap_or(&[]);
                lane.used += ready_count(rest, horizon_ns);
                if lane.used < batch.events.len() {
                    break;
                }
                lane.used = 0;
                spent.extend(lane.batches.pop_front());
            }
        }
    }
}

/// The number of leading runs that overlap in time, directly or transitively.
fn overlapping(runs: &[Run]) -> usize {
    let mut reached_ns = 0;
    let overlaps = |run: &&Run| {
        let overlaps = reached_ns == 0 || run.first_ns < reached_ns;
        reached_ns = reached_ns.max(run.last_ns);
        overlaps
    };
    runs.iter().take_while(overlaps).count().max(1)
}

/// The number of `events` before the horizon; `events` are in time order.
fn ready_count(events: &[ThreadEvent], horizon_ns: u64) -> usize {
    match events.last() {
        Some(last) if last.stamp_ns >= horizon_ns => {
            events.partition_point(|event| event.stamp_ns < horizon_ns)
        }
        _ => events.len(),
    }
}

fn events_of<'l>(lanes: &'l [Lane], run: &Run) -> &'l [ThreadEvent] {
    lanes
        .get(run.lane)
        .and_then(|lane| lane.batches.get(run.batch)?.events.get(run.from..run.to))
        .unwrap_or(&[])
}

impl<F: Follow + Send> Consume<ThreadBatch> for Lanes<F> {
    fn take(&mut self, stream: usize, mut batch: ThreadBatch) {
        let step = self.lanes.get_mut(stream).and_then(|lane| lane.order(stream, &mut batch));
        batch.losses.damage.extend(step);
        if let Some(lane) = self.lanes.get(stream) {
            self.losses.merge(std::mem::take(&mut batch.losses), lane.cpu, lane.buffer);
        }
        self.seen.merge(batch.seen);
        for thread in &batch.vcpu_threads {
            self.runs.add_thread(*thread);
        }
        let Some(lane) = self.lanes.get_mut(stream) else { return };
        let number = u16::try_from(stream).unwrap_or(u16::MAX);
        let head_gap = batch.head_gap || lane.tail_gap;
        if let (true, Some(first_ns)) = (head_gap, batch.first_ns) {
            batch.events.insert(0, ThreadEvent::lost(number, lane.last_ns.unwrap_or(0), first_ns));
        }
        lane.tail_gap = batch.tail_gap || (lane.tail_gap && batch.first_ns.is_none());
        lane.last_ns = lane.last_ns.max(batch.last_stamp_ns());
        lane.blocks_left = lane.blocks_left.saturating_sub(1);
        if (lane.tail_gap || lane.cut) && lane.blocks_left == 0 {
            // The end cannot be read: the state of this CPU is unknown from here on.
            let from_ns = lane.last_ns.unwrap_or(0);
            batch.events.push(ThreadEvent::lost(number, from_ns, u64::MAX));
        }
        lane.batches.push_back(batch);
    }

    fn advance(&mut self, horizon_ns: u64, spent: &mut Vec<ThreadBatch>) -> ControlFlow<()> {
        self.collect_runs(horizon_ns);
        self.feed();
        self.follower.vcpus().forget_gaps_before(horizon_ns);
        self.release(horizon_ns, spent);
        ControlFlow::Continue(())
    }
}
