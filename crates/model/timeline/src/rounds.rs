//! Reads all streams of a recording in time order, and decodes in parallel.
//!
//! Each stream (a CPU's pages) is in time order by itself. A *round* decodes a few blocks of the
//! streams that lag behind. Everything before the *horizon*, the earliest time that some stream has
//! not reached yet, is complete in all streams and can be consumed. The next round is decoded while
//! one is consumed.
//!
//! ```text
//!  round 1   stream 0  ██████████                 █ decoded before   ▓ decoded in this round
//!            stream 1  ██████                     · consumed
//!                            ^ horizon: stream 1 may still have items from here on
//!  round 2   stream 0  ······████                 stream 1 lags behind, and is read on
//!            stream 1  ······▓▓▓▓▓▓▓▓
//!                                ^ horizon: stream 0 may still have items from here on
//!  round 3   stream 0  ··········▓▓▓▓▓▓
//!            stream 1  ··········████
//!                                    ^ horizon
//! ```
//!
//! The contract: items of a stream come in time order, so a consumer that retains items at or after
//! the horizon, and merges items before it, sees every item of the recording once and in time
//! order.
//!
//! Memory is bounded by the blocks of one round and the items beyond the horizon: a stream that is
//! ahead is not decoded further until the others have caught up.

mod in_order;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;
use rayon::prelude::*;
use sources::{Block, BlockReader, Recording, Stream};

pub use in_order::{Lanes, in_order};

/// Maximum bytes of pages to decode per round and worker thread (before decompression).
const ROUND_BYTES_PER_WORKER: u64 = 2 << 20;

/// Maximum bytes of decompressed pages per round: a small chunk can contain any number of pages.
/// The results of a round take several times as much memory.
static ROUND_BYTES: AtomicU64 = AtomicU64::new(8 << 20);

/// Minimum bytes to decode per round, even with little memory.
const MIN_ROUND_BYTES: u64 = 1 << 20;

/// Adapts read-ahead to the memory that this process may use.
pub fn fit_into_memory(bytes: u64) {
    ROUND_BYTES.store((bytes / 32).max(MIN_ROUND_BYTES), Relaxed);
}

/// Maximum bytes of pages per round, according to the memory that this process may use.
#[must_use]
pub fn round_bytes() -> u64 {
    ROUND_BYTES.load(Relaxed)
}

/// A stream to read, with its recording.
#[derive(Clone, Copy, Debug)]
pub struct Input<'r> {
    /// The recording.
    pub recording: &'r Recording,
    /// One of its streams.
    pub stream: &'r Stream,
}

impl<'r> Input<'r> {
    /// All streams of a recording.
    #[must_use]
    pub fn all_of(recording: &'r Recording) -> Vec<Self> {
        recording.streams().iter().map(|stream| Self { recording, stream }).collect()
    }

    /// The streams whose times are on the recording's own clock: other times cannot be compared
    /// with them.
    #[must_use]
    pub fn on_clock_of(recording: &'r Recording) -> Vec<Self> {
        let is_on_it = |input: &Self| recording.correction(input.stream).is_on_recording_clock();
        Self::all_of(recording).into_iter().filter(is_on_it).collect()
    }
}

/// Converts the pages of a block to a batch of items in time order.
pub trait Decode: Sync {
    /// The result for a block; created with `Default`, or reused.
    type Batch: Batch;

    /// The number of decoders inside: they share the memory of a round.
    fn decoders(&self) -> u64 {
        1
    }

    /// Decodes `block` of input number `index`.
    fn decode(&self, index: usize, input: Input<'_>, block: &Block<'_>, batch: &mut Self::Batch);
}

/// Decoded items of one block.
pub trait Batch: Default + Send {
    /// Removes the items, but keeps the memory.
    fn clear(&mut self);

    /// The latest time in the block, with or without an item at that time.
    fn last_stamp_ns(&self) -> Option<u64>;

    /// The block cannot be decompressed.
    fn set_unreadable(&mut self, damage: sources::Damage);
}

/// Receives batches and processes them up to each horizon.
pub trait Consume<B>: Send {
    /// The next batch of an input.
    fn take(&mut self, input: usize, batch: B);

    /// All items before `horizon_ns` have arrived; consumed batches go to `spent`. Breaks off if no
    /// more items are wanted.
    fn advance(&mut self, horizon_ns: u64, spent: &mut Vec<B>) -> ControlFlow<()>;
}

/// Reading progress of a stream.
#[derive(Default)]
struct Progress {
    next_block: usize,
    blocks: usize,
    /// Planned blocks in the round that is being decoded.
    planned: u64,
    reached_ns: Option<u64>,
    /// Time span of a block according to the latest decoded blocks; at least 1.
    block_ns: u64,
}

impl Progress {
    /// The round's blocks have been decoded up to `stamp_ns`.
    fn note(&mut self, stamp_ns: Option<u64>) {
        let before_ns = self.reached_ns;
        self.reached_ns = before_ns.max(stamp_ns);
        if let (Some(before_ns), Some(reached_ns)) = (before_ns, self.reached_ns) {
            let gained_ns = reached_ns.saturating_sub(before_ns);
            self.block_ns = (gained_ns / self.planned.max(1)).max(1);
        }
        self.planned = 0;
    }

    fn is_done(&self) -> bool {
        self.next_block >= self.blocks
    }
}

/// Reads all `inputs`; `tick` receives the number of input bytes of each round.
pub fn run<D, C>(
    inputs: &[Input<'_>],
    decoder: &D,
    consumer: &mut C,
    on_progress: &(dyn Fn(u64) + Sync),
) where
    D: Decode,
    C: Consume<D::Batch>,
{
    run_every(1, inputs, decoder, consumer, on_progress);
}

/// [`run`] over the first block of each `step`.
pub(crate) fn run_every<D, C>(
    step: usize,
    inputs: &[Input<'_>],
    decoder: &D,
    consumer: &mut C,
    on_progress: &(dyn Fn(u64) + Sync),
) where
    D: Decode,
    C: Consume<D::Batch>,
{
    let mut rounds = Rounds { step: step.max(1), ..Rounds::new(inputs, decoder.decoders()) };
    let mut spent = Vec::new();
    let mut current = rounds.decode_next(decoder, &mut spent);
    while let Some(round) = current {
        let horizon_ns = rounds.note(&round);
        on_progress(round.bytes);
        let mut fresh = std::mem::take(&mut spent);
        let (next, flow) = rayon::join(
            || rounds.decode_next(decoder, &mut fresh),
            || {
                for (input, batch) in round.batches {
                    consumer.take(input, batch);
                }
                consumer.advance(horizon_ns, &mut spent)
            },
        );
        if flow.is_break() {
            return;
        }
        spent.append(&mut fresh);
        // Consumers return their batches at different times, each as a separate set; without this
        // limit the number of sets would grow.
        spent.truncate(next.as_ref().map_or(0, |round| round.batches.len()));
        current = next;
    }
    let _ = consumer.advance(u64::MAX, &mut spent);
}

/// The decoded blocks of one round, in stream and block order.
struct Round<B> {
    batches: Vec<(usize, B)>,
    bytes: u64,
}

struct Rounds<'r> {
    inputs: &'r [Input<'r>],
    progress: Vec<Progress>,
    /// Step from one decoded block to the next.
    step: usize,
    budget: u64,
    /// Maximum bytes of unpacked pages per round.
    round_bytes: u64,
    readers: ReaderPool,
}

/// Idle readers, whose memory and decompressors are worth keeping.
#[derive(Default)]
struct ReaderPool(Mutex<Vec<BlockReader>>);

impl ReaderPool {
    fn borrow(&self) -> BlockReader {
        let mut idle = self.0.lock();
        idle.pop().unwrap_or_default()
    }

    fn give_back(&self, reader: BlockReader) {
        self.0.lock().push(reader);
    }
}

impl<'r> Rounds<'r> {
    fn new(inputs: &'r [Input<'r>], decoders: u64) -> Self {
        let begin =
            |input: &Input<'_>| Progress { blocks: input.stream.block_count(), ..<_>::default() };
        let progress = inputs.iter().map(begin).collect();
        let workers = rayon::current_num_threads() as u64;
        let budget = ROUND_BYTES_PER_WORKER * workers.max(1);
        let round_bytes = (round_bytes() / decoders.max(1)).max(1);
        let readers = ReaderPool::default();
        Self { inputs, progress, step: 1, budget, round_bytes, readers }
    }

    /// The blocks to decode next: always of the stream that is expected to lag most, until the
    /// budget is used up. CPUs differ in their event rates: a block of an idle CPU spans seconds,
    /// and reading it early only costs memory.
    fn plan(&mut self) -> Vec<(usize, usize)> {
        let unread = self.progress.iter().enumerate().filter(|(_, progress)| !progress.is_done());
        let mut behind: BinaryHeap<_> =
            unread.map(|(at, progress)| Reverse((progress.reached_ns.unwrap_or(0), at))).collect();
        let (mut plan, mut remaining) = (Vec::new(), self.budget);
        let mut left_unpacked = self.round_bytes;
        while remaining > 0 && left_unpacked > 0 {
            let Some(Reverse((expected_ns, at))) = behind.pop() else { break };
            let (Some(progress), Some(input)) = (self.progress.get_mut(at), self.inputs.get(at))
            else {
                continue;
            };
            plan.push((at, progress.next_block));
            let stream = input.stream;
            remaining = remaining.saturating_sub(stream.block_len(progress.next_block).max(1));
            let unpacked = stream.unpacked_len(progress.next_block);
            left_unpacked = left_unpacked.saturating_sub(unpacked);
            progress.next_block = progress.next_block.saturating_add(self.step);
            progress.planned += 1;
            if !progress.is_done() {
                behind.push(Reverse((expected_ns.saturating_add(progress.block_ns.max(1)), at)));
            }
        }
        plan
    }

    fn decode_next<D: Decode>(
        &mut self,
        decoder: &D,
        pool: &mut Vec<D::Batch>,
    ) -> Option<Round<D::Batch>> {
        let plan = self.plan();
        if plan.is_empty() {
            return None;
        }
        let bytes = plan
            .iter()
            .filter_map(|&(at, block)| Some(self.inputs.get(at)?.stream.block_len(block)))
            .sum();
        let jobs: Vec<_> = plan
            .into_iter()
            .map(|(at, block)| (at, block, pool.pop().unwrap_or_default()))
            .collect();
        let batches = jobs
            .into_par_iter()
            .map(|(at, block, mut batch)| {
                batch.clear();
                let mut reader = self.readers.borrow();
                self.decode_block(decoder, at, block, &mut reader, &mut batch);
                self.readers.give_back(reader);
                (at, batch)
            })
            .collect();
        Some(Round { batches, bytes })
    }

    fn decode_block<D: Decode>(
        &self,
        decoder: &D,
        at: usize,
        block: usize,
        reader: &mut BlockReader,
        batch: &mut D::Batch,
    ) {
        let Some(&input) = self.inputs.get(at) else { return };
        match input.recording.block(input.stream, block, reader) {
            Ok(block) => decoder.decode(at, input, &block, batch),
            Err(damage) => batch.set_unreadable(damage),
        }
    }

    /// Records the progress of the round and returns the new horizon.
    fn note<B: Batch>(&mut self, round: &Round<B>) -> u64 {
        let mut reached_ns: Vec<Option<u64>> = vec![None; self.progress.len()];
        for (at, batch) in &round.batches {
            if let Some(reached_ns) = reached_ns.get_mut(*at) {
                *reached_ns = (*reached_ns).max(batch.last_stamp_ns());
            }
        }
        for (progress, reached_ns) in self.progress.iter_mut().zip(reached_ns) {
            if progress.planned > 0 {
                progress.note(reached_ns);
            }
        }
        let unread = self.progress.iter().filter(|progress| !progress.is_done());
        unread.map(|progress| progress.reached_ns.unwrap_or(0)).min().unwrap_or(u64::MAX)
    }
}
