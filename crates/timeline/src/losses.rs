//! What a recording lost, counted: losses are data and stand beside every result.

use sources::Damage;

use crate::thread_batch::ThreadBatch;

/// Losses of one recording.
#[derive(Clone, Debug, Default)]
pub struct Losses {
    /// Events the kernel dropped, as far as it counted them.
    pub events_lost: u64,
    /// Places where it dropped events without a count.
    pub uncounted_losses: u64,
    /// Parts of the container, pages, records or compressed chunks that could not be read.
    pub damage: Vec<Damage>,
    /// Damages beyond those kept in `damage`.
    pub more_damage: u64,
    /// Records read.
    pub records: u64,
}

/// Damages kept with their text; the rest are counted, so that a file of rubbish costs no memory.
const MAX_DAMAGE_KEPT: usize = 100;

impl Losses {
    /// What was missing or wrong outside the pages, before any was read.
    pub(crate) fn of_container(damage: &[Damage]) -> Self {
        let kept = damage.get(..MAX_DAMAGE_KEPT).unwrap_or(damage);
        let more_damage = (damage.len() - kept.len()) as u64;
        Self { damage: kept.to_vec(), more_damage, ..Self::default() }
    }

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

    /// Parts of the container, pages, records and chunks that could not be read.
    #[must_use]
    pub fn pages_damaged(&self) -> u64 {
        self.damage.len() as u64 + self.more_damage
    }
}
