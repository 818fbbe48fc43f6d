//! What a recording lost, counted: losses are data and stand beside every result.

use sources::Damage;

use crate::extract::ThreadBatch;

/// Losses of one recording.
#[derive(Clone, Debug, Default)]
pub struct Losses {
    /// Events the kernel dropped, as far as it counted them.
    pub events_lost: u64,
    /// Places where it dropped events without a count.
    pub uncounted_losses: u64,
    /// Pages, records or compressed chunks that could not be read.
    pub damage: Vec<Damage>,
    /// Damages beyond those kept in `damage`.
    pub more_damage: u64,
    /// Records read.
    pub records: u64,
}

/// Damages kept with their text; the rest are counted, so that a file of rubbish costs no memory.
const MAX_DAMAGE_KEPT: usize = 100;

impl Losses {
    pub(crate) fn add(&mut self, batch: &mut ThreadBatch) {
        self.events_lost = self.events_lost.saturating_add(batch.events_lost);
        self.uncounted_losses += batch.uncounted_losses;
        self.records += batch.records;
        for damage in batch.damage.drain(..) {
            if self.damage.len() < MAX_DAMAGE_KEPT {
                self.damage.push(damage);
            } else {
                self.more_damage += 1;
            }
        }
    }

    /// Pages, records and chunks that could not be read.
    #[must_use]
    pub fn pages_damaged(&self) -> u64 {
        self.damage.len() as u64 + self.more_damage
    }
}
