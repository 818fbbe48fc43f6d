//! What a recording lost, counted: losses are data and stand beside every result.

use sources::{Damage, Damages};

use crate::thread_batch::ThreadBatch;

/// Losses of one recording.
#[derive(Clone, Debug, Default)]
pub struct Losses {
    /// Events the kernel dropped, as far as it counted them.
    pub events_lost: u64,
    /// Places where it dropped events without a count.
    pub uncounted_losses: u64,
    /// Parts of the container, pages, records or compressed chunks that could not be read.
    pub damage: Damages,
    /// Records read.
    pub records: u64,
}

impl Losses {
    /// What was missing or wrong outside the pages, before any was read.
    pub(crate) fn of_container(damage: &[Damage]) -> Self {
        let mut losses = Self::default();
        losses.damage.extend(damage.iter().cloned());
        losses
    }

    pub(crate) fn add(&mut self, batch: &mut ThreadBatch) {
        self.events_lost = self.events_lost.saturating_add(batch.events_lost);
        self.uncounted_losses += batch.uncounted_losses;
        self.records += batch.records;
        self.damage.extend(batch.damage.drain(..));
    }

    /// Parts of the container, pages, records and chunks that could not be read.
    #[must_use]
    pub fn pages_damaged(&self) -> u64 {
        self.damage.count()
    }
}
