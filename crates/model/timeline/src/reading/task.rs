//! Tasks of any type in a list: batches and consumers behind pointers.

use std::any::Any;
use std::marker::PhantomData;
use std::ops::ControlFlow;

use rayon::prelude::*;
use sources::{Block, Damage};

use crate::rounds::{Batch, Consume, Decode, Input};

/// A task of a reading: it decodes each block, and consumes the decoded batches.
pub trait Task {
    /// The decoder and the consumer: a round is decoded while the previous one is consumed.
    fn split(&mut self) -> (&dyn AnyDecoder, Box<dyn AnyConsumer + '_>);
}

/// A task made of a decoder and the consumer of its batches.
#[derive(Debug)]
pub struct BlockTask<D, C> {
    /// Decodes blocks.
    pub decoder: D,
    /// Consumes the batches.
    pub consumer: C,
}

impl<D, C> Task for BlockTask<D, C>
where
    D: Decode<Batch: 'static>,
    C: Consume<D::Batch>,
{
    fn split(&mut self) -> (&dyn AnyDecoder, Box<dyn AnyConsumer + '_>) {
        let consumer = ConsumerOf { consumer: &mut self.consumer, batches: PhantomData };
        (&self.decoder, Box::new(consumer))
    }
}

/// [`Batch`] of any type.
pub trait AnyBatch: Any + Send {
    /// See [`Batch::clear`].
    fn clear(&mut self);

    /// See [`Batch::last_stamp_ns`].
    fn last_stamp_ns(&self) -> Option<u64>;

    /// See [`Batch::set_unreadable`].
    fn set_unreadable(&mut self, damage: Damage);
}

impl<B: Batch + 'static> AnyBatch for B {
    fn clear(&mut self) {
        Batch::clear(self);
    }

    fn last_stamp_ns(&self) -> Option<u64> {
        Batch::last_stamp_ns(self)
    }

    fn set_unreadable(&mut self, damage: Damage) {
        Batch::set_unreadable(self, damage);
    }
}

/// [`Decode`] of any type.
pub trait AnyDecoder: Sync {
    /// See [`Decode::decoders`].
    fn decoders(&self) -> u64;

    /// An empty batch of the type that [`AnyDecoder::decode`] fills.
    fn empty_batch(&self) -> Box<dyn AnyBatch>;

    /// Decodes a block into a batch of this decoder.
    fn decode(&self, index: usize, input: Input<'_>, block: &Block<'_>, batch: &mut dyn AnyBatch);
}

impl<D: Decode<Batch: 'static>> AnyDecoder for D {
    fn decoders(&self) -> u64 {
        Decode::decoders(self)
    }

    fn empty_batch(&self) -> Box<dyn AnyBatch> {
        Box::new(D::Batch::default())
    }

    fn decode(&self, index: usize, input: Input<'_>, block: &Block<'_>, batch: &mut dyn AnyBatch) {
        let batch: &mut dyn Any = batch;
        if let Some(batch) = batch.downcast_mut() {
            Decode::decode(self, index, input, block, batch);
        }
    }
}

/// [`Consume`] of any type.
pub trait AnyConsumer: Send {
    /// See [`Consume::take`]. `batch` comes from this consumer's decoder; `None` if no block was
    /// decoded.
    fn take(&mut self, input: usize, batch: Option<Box<dyn AnyBatch>>, damage: Option<Damage>);

    /// See [`Consume::advance`].
    fn advance(&mut self, horizon_ns: u64) -> (ControlFlow<()>, Vec<Box<dyn AnyBatch>>);
}

/// A consumer of batches of one type.
struct ConsumerOf<'c, B, C> {
    consumer: &'c mut C,
    batches: PhantomData<fn(B)>,
}

impl<B: Batch + 'static, C: Consume<B>> AnyConsumer for ConsumerOf<'_, B, C> {
    fn take(&mut self, input: usize, batch: Option<Box<dyn AnyBatch>>, damage: Option<Damage>) {
        let batch: Option<Box<dyn Any>> = batch.map(|batch| batch as Box<dyn Any>);
        let batch = batch.and_then(|batch| batch.downcast::<B>().ok());
        let mut batch = batch.map_or_else(B::default, |batch| *batch);
        if let Some(damage) = damage {
            Batch::set_unreadable(&mut batch, damage);
        }
        self.consumer.take(input, batch);
    }

    fn advance(&mut self, horizon_ns: u64) -> (ControlFlow<()>, Vec<Box<dyn AnyBatch>>) {
        let mut spent = Vec::new();
        let flow = self.consumer.advance(horizon_ns, &mut spent);
        (flow, spent.into_iter().map(|batch| Box::new(batch) as Box<dyn AnyBatch>).collect())
    }
}

/// The output of all tasks' decoders for one block.
#[derive(Default)]
pub(super) struct Batches {
    /// By task; `None` until it is decoded for the first time.
    by_task: Vec<Option<Box<dyn AnyBatch>>>,
    /// Set if the block cannot be read.
    damage: Option<Damage>,
}

impl Batch for Batches {
    fn clear(&mut self) {
        self.by_task.iter_mut().flatten().for_each(|batch| batch.clear());
        self.damage = None;
    }

    fn last_stamp_ns(&self) -> Option<u64> {
        self.by_task.iter().flatten().filter_map(|batch| batch.last_stamp_ns()).max()
    }

    fn set_unreadable(&mut self, damage: Damage) {
        self.damage = Some(damage);
    }
}

/// The decoders of all tasks.
pub(super) struct Decoders<'t>(pub(super) Vec<&'t dyn AnyDecoder>);

impl Decode for Decoders<'_> {
    type Batch = Batches;

    fn decoders(&self) -> u64 {
        self.0.iter().map(|decoder| decoder.decoders()).sum()
    }

    fn decode(&self, index: usize, input: Input<'_>, block: &Block<'_>, batches: &mut Batches) {
        batches.by_task.resize_with(self.0.len(), || None);
        for (decoder, batch) in self.0.iter().zip(&mut batches.by_task) {
            let batch = batch.get_or_insert_with(|| decoder.empty_batch());
            decoder.decode(index, input, block, batch.as_mut());
        }
    }
}

/// The consumers of all tasks: each consumes its batches of a round on its own thread.
pub(super) struct Consumers<'t>(Vec<Box<dyn AnyConsumer + 't>>);

impl<'t> Consumers<'t> {
    pub(super) fn new(consumers: Vec<Box<dyn AnyConsumer + 't>>) -> Self {
        Self(consumers)
    }
}

impl Consume<Batches> for Consumers<'_> {
    fn take(&mut self, input: usize, batches: Batches) {
        let Batches { mut by_task, damage } = batches;
        by_task.resize_with(self.0.len(), || None);
        for (consumer, batch) in self.0.iter_mut().zip(by_task) {
            consumer.take(input, batch, damage.clone());
        }
    }

    /// Ends the reading if a consumer does.
    fn advance(&mut self, horizon_ns: u64, spent: &mut Vec<Batches>) -> ControlFlow<()> {
        let done: Vec<_> =
            self.0.par_iter_mut().map(|consumer| consumer.advance(horizon_ns)).collect();
        let is_ended = done.iter().any(|(flow, _)| flow.is_break());
        let tasks = done.len();
        for (task, (_, batches)) in done.into_iter().enumerate() {
            for (at, batch) in batches.into_iter().enumerate() {
                if spent.len() <= at {
                    spent.push(Batches::default());
                }
                let Some(Batches { by_task, .. }) = spent.get_mut(at) else { continue };
                by_task.resize_with(tasks, || None);
                if let Some(place) = by_task.get_mut(task) {
                    *place = Some(batch);
                }
            }
        }
        if is_ended { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
