//! Reads all streams of a recording in time order, decoding in parallel.
//!
//! Each stream (a CPU's pages) is in time order by itself. A *round* decodes a few blocks of the
//! streams that lag behind; what lies before the *horizon*, the earliest moment some stream has
//! yet to reach, is complete in all streams and can be consumed. While one round is consumed the
//! next is decoded.
//!
//! ```text
//!  stream 0  ████████████████░░░░            █ decoded   ░ to be decoded this round
//!  stream 1  ██████████░░░░
//!                      ^ horizon
//! ```
//!
//! Memory is bounded by the blocks of one round and what runs ahead of the horizon: streams that
//! are ahead are not decoded further until the others have caught up.

use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use sources::{Block, BlockReader, Recording, Stream};

/// Bytes of pages decoded per round and worker thread, at most (compressed: before decompression).
const ROUND_BYTES_PER_WORKER: u64 = 1 << 20;

/// One stream to read, and the recording it belongs to.
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
}

/// Turns the pages of a block into a batch of items in time order.
pub trait Decode: Sync {
    /// What a block becomes; made anew with `Default`, or an old one used again.
    type Batch: Batch;

    /// Decodes `block`, which belongs to input number `index`.
    fn decode(&self, index: usize, input: Input<'_>, block: &Block<'_>, batch: &mut Self::Batch);
}

/// Decoded items of one block.
pub trait Batch: Default + Send {
    /// Forgets the items, keeps the memory.
    fn clear(&mut self);

    /// The greatest time reached by the block, whether or not an item stands there.
    fn last_stamp_ns(&self) -> Option<u64>;

    /// The block can't be decompressed.
    fn set_unreadable(&mut self, damage: sources::Damage);
}

/// Takes the batches and works through them up to each horizon.
pub trait Consume<B>: Send {
    /// The next batch of an input.
    fn take(&mut self, input: usize, batch: B);

    /// All items before `horizon_ns` have been taken; batches used up go to `spent`.
    /// Breaks off when nothing more is wanted.
    fn advance(&mut self, horizon_ns: u64, spent: &mut Vec<B>) -> ControlFlow<()>;
}

/// How far the reading of one stream has come.
#[derive(Default)]
struct Progress {
    next_block: usize,
    blocks: usize,
    reached_ns: u64,
}

/// Reads all of `inputs`; `tick` is told how many bytes of them each round took.
pub fn run<D, C>(inputs: &[Input<'_>], decoder: &D, consumer: &mut C, tick: &(dyn Fn(u64) + Sync))
where
    D: Decode,
    C: Consume<D::Batch>,
{
    let mut rounds = Rounds::new(inputs);
    let mut spent = Vec::new();
    let mut current = rounds.decode_next(decoder, &mut spent);
    while let Some(round) = current {
        let horizon_ns = rounds.note(&round);
        tick(round.bytes);
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
    budget: u64,
    readers: ReaderPool,
}

/// Readers that are not in use: they hold memory and decompressors worth keeping.
#[derive(Default)]
struct ReaderPool(Mutex<Vec<BlockReader>>);

impl ReaderPool {
    fn borrow(&self) -> BlockReader {
        // A reader is whole whatever happened while the lock was held.
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        idle.pop().unwrap_or_default()
    }

    fn give_back(&self, reader: BlockReader) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
    }
}

impl<'r> Rounds<'r> {
    fn new(inputs: &'r [Input<'r>]) -> Self {
        let begin =
            |input: &Input<'_>| Progress { blocks: input.stream.block_count(), ..<_>::default() };
        let progress = inputs.iter().map(begin).collect();
        let workers = rayon::current_num_threads() as u64;
        let budget = ROUND_BYTES_PER_WORKER * workers.max(1);
        Self { inputs, progress, budget, readers: ReaderPool::default() }
    }

    /// The blocks to decode next: those of the streams furthest behind, within the budget.
    fn plan(&mut self) -> Vec<(usize, usize)> {
        let mut lagging: Vec<usize> = (0..self.progress.len())
            .filter(|&at| self.progress.get(at).is_some_and(|one| one.next_block < one.blocks))
            .collect();
        lagging.sort_by_key(|&at| self.progress.get(at).map_or(0, |one| one.reached_ns));
        let mut plan = Vec::new();
        let mut left = self.budget;
        let share = (self.budget / (lagging.len() as u64).max(1)).max(1);
        for at in lagging {
            if left == 0 {
                break;
            }
            let (Some(progress), Some(input)) = (self.progress.get_mut(at), self.inputs.get(at))
            else {
                continue;
            };
            let mut taken = 0;
            while progress.next_block < progress.blocks && taken < share {
                plan.push((at, progress.next_block));
                taken += input.stream.block_len(progress.next_block).max(1);
                progress.next_block += 1;
            }
            left = left.saturating_sub(taken);
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

    /// Notes how far the round has come and returns the horizon behind it.
    fn note<B: Batch>(&mut self, round: &Round<B>) -> u64 {
        for (at, batch) in &round.batches {
            if let (Some(progress), Some(stamp_ns)) =
                (self.progress.get_mut(*at), batch.last_stamp_ns())
            {
                progress.reached_ns = progress.reached_ns.max(stamp_ns);
            }
        }
        let behind = self.progress.iter().filter(|one| one.next_block < one.blocks);
        behind.map(|one| one.reached_ns).min().unwrap_or(u64::MAX)
    }
}
