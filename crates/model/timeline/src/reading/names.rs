//! The task that collects the names that events give to numbers.

use super::Reading;
use super::task::{AnyConsumer, AnyDecoder, BlockTask, Task};
use crate::numbered_names::{NameDecoder, NameGatherer, NamedNumber, NumberedNames};

/// Collects names: see [`Reading::names`].
#[derive(Debug)]
pub struct NameTask<'t>(BlockTask<NameDecoder<'t>, NameGatherer<'t>>);

impl<'t> NameTask<'t> {
    pub(super) fn new(reading: &'t Reading<'_>, named: NamedNumber) -> Self {
        let Reading { recordings, owners, .. } = reading;
        let decoder = NameDecoder::new(recordings, owners, named);
        Self(BlockTask { decoder, consumer: NameGatherer::new(owners) })
    }

    /// The names.
    #[must_use]
    pub fn finish(self) -> NumberedNames {
        self.0.consumer.names
    }
}

impl Task for NameTask<'_> {
    fn split(&mut self) -> (&dyn AnyDecoder, Box<dyn AnyConsumer + '_>) {
        self.0.split()
    }
}
