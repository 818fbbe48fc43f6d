//! From per-CPU streams to per-thread sequences: no global merge.
//!
//! Within a stream, events of one thread come in runs. The runs of a thread from all streams, put
//! in order of their first stamp, are its history; only where runs overlap in time (a thread woken
//! by another CPU, or moved without a recorded switch) are they merged event by event.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::exits::ExitPass;
use crate::losses::Losses;
use crate::rounds::{Batch, Consume};
use crate::thread_batch::ThreadBatch;
use crate::thread_event::{Kind, KindSet, ThreadEvent};
use crate::vcpu::ExitSink;
use crate::vcpus::Vcpus;

/// Batches of one stream that have not been used up.
#[derive(Debug, Default)]
struct Lane {
    batches: VecDeque<ThreadBatch>,
    /// Events of the first batch used up.
    used: usize,
    last_ns: Option<u64>,
    tail_gap: bool,
}

/// Part of a batch: events `from..to` of batch `batch` in lane `lane`, all of one thread.
#[derive(Clone, Copy, Debug)]
struct Run {
    lane: usize,
    batch: usize,
    from: usize,
    to: usize,
    first_ns: u64,
    last_ns: u64,
}

/// Feeds the vCPU threads of one recording.
#[derive(Debug)]
pub(crate) struct Lanes<S> {
    lanes: Vec<Lane>,
    vcpus: Vcpus,
    /// Threads that enter or leave a guest somewhere in the batches taken so far: what happens to
    /// them before that, on any stream, belongs to their history.
    vcpu_threads: FxHashSet<u32>,
    losses: Losses,
    seen: KindSet,
    sink: S,
    /// Kept between rounds for its memory.
    runs: FxHashMap<u32, Vec<Run>>,
    gaps: Vec<ThreadEvent>,
    merged: Vec<ThreadEvent>,
}

impl<S: ExitSink> Lanes<S> {
    pub(crate) fn new(streams: usize, sink: S, losses: Losses) -> Self {
        Self {
            lanes: (0..streams).map(|_| Lane::default()).collect(),
            vcpus: Vcpus::default(),
            vcpu_threads: FxHashSet::default(),
            losses,
            seen: KindSet::default(),
            sink,
            runs: FxHashMap::default(),
            gaps: Vec::new(),
            merged: Vec::new(),
        }
    }

    /// Ends the recording.
    pub(crate) fn finish(mut self) -> ExitPass<S> {
        let vcpus = self.vcpus.finish(&mut self.sink);
        ExitPass { vcpus, seen: self.seen, losses: self.losses, sink: self.sink }
    }

    /// Sorts the events before `horizon_ns` into runs.
    fn collect_runs(&mut self, horizon_ns: u64) {
        for (lane_at, lane) in self.lanes.iter().enumerate() {
            let mut from = lane.used;
            for (batch_at, batch) in lane.batches.iter().enumerate() {
                let rest = batch.events.get(from..).unwrap_or(&[]);
                let ready = rest.get(..ready_count(rest, horizon_ns)).unwrap_or(&[]);
                let mut start = 0;
                for events in ready.chunk_by(|a, b| a.thread == b.thread) {
                    let at = Run {
                        lane: lane_at,
                        batch: batch_at,
                        from: from + start,
                        to: from + start + events.len(),
                        first_ns: events.first().map_or(0, |event| event.stamp_ns),
                        last_ns: events.last().map_or(0, |event| event.stamp_ns),
                    };
                    start += events.len();
                    keep_run(&self.vcpu_threads, &mut self.runs, &mut self.gaps, at, events);
                }
                if ready.len() < rest.len() {
                    break;
                }
                from = 0;
            }
        }
    }

    /// Feeds every thread its runs.
    fn feed(&mut self) {
        self.gaps.sort_by_key(|gap| gap.stamp_ns);
        let mut runs = std::mem::take(&mut self.runs);
        if !self.gaps.is_empty() {
            for thread in self.vcpus.threads() {
                runs.entry(thread).or_default();
            }
        }
        for (&thread, runs) in &mut runs {
            runs.sort_by_key(|run| run.first_ns);
            let in_order = runs.is_sorted_by(|a, b| a.last_ns <= b.first_ns);
            if in_order && self.gaps.is_empty() {
                for run in runs.iter() {
                    self.vcpus.feed(thread, events_of(&self.lanes, run), &mut self.sink);
                }
            } else {
                self.merged.clear();
                self.merged.extend_from_slice(&self.gaps);
                for run in runs.iter() {
                    self.merged.extend_from_slice(events_of(&self.lanes, run));
                }
                self.merged.sort_by_key(|event| event.stamp_ns);
                self.vcpus.feed(thread, &self.merged, &mut self.sink);
            }
            runs.clear();
        }
        runs.retain(|&thread, _| self.vcpus.knows(thread));
        self.runs = runs;
        self.gaps.clear();
    }

    /// Gives back the batches that are used up.
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

/// Notes a run of one thread, if the thread is a vCPU's.
fn keep_run(
    vcpu_threads: &FxHashSet<u32>,
    runs: &mut FxHashMap<u32, Vec<Run>>,
    gaps: &mut Vec<ThreadEvent>,
    run: Run,
    events: &[ThreadEvent],
) {
    let Some(first) = events.first() else { return };
    if first.kind == Kind::Lost {
        gaps.extend_from_slice(events);
        return;
    }
    if vcpu_threads.contains(&first.thread) {
        runs.entry(first.thread).or_default().push(run);
    }
}

/// How many of `events`, which are in time order, lie before the horizon.
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

impl<S: ExitSink + Send> Consume<ThreadBatch> for Lanes<S> {
    fn take(&mut self, stream: usize, mut batch: ThreadBatch) {
        self.losses.add(&mut batch);
        self.seen.merge(batch.seen);
        self.vcpu_threads.extend(&batch.vcpu_threads);
        let Some(lane) = self.lanes.get_mut(stream) else { return };
        let behind = batch.first_ns.is_some() && batch.first_ns < lane.last_ns;
        let head_gap = batch.head_gap.or((lane.tail_gap || behind).then_some(0));
        if let (Some(count), Some(first_ns)) = (head_gap, batch.first_ns) {
            let number = u16::try_from(stream).unwrap_or(u16::MAX);
            batch
                .events
                .insert(0, ThreadEvent::lost(number, lane.last_ns.unwrap_or(0), first_ns, count));
        }
        lane.tail_gap = batch.tail_gap || (lane.tail_gap && batch.first_ns.is_none());
        lane.last_ns = lane.last_ns.max(batch.last_stamp_ns());
        lane.batches.push_back(batch);
    }

    fn advance(&mut self, horizon_ns: u64, spent: &mut Vec<ThreadBatch>) -> ControlFlow<()> {
        self.collect_runs(horizon_ns);
        self.feed();
        self.release(horizon_ns, spent);
        ControlFlow::Continue(())
    }
}
