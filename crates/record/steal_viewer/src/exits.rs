//! Exits of one reason, and their ticks by activity.

use shmring::spans::Activity;

pub(crate) fn place(activity: Activity) -> Option<usize> {
    Activity::ALL.iter().position(|known| *known == activity)
}

/// Exits of one reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exits {
    /// Number of exits.
    pub count: u64,
    /// Ticks by activity of the vCPU's thread, in the order of [`Activity::ALL`].
    pub ticks: [u64; Activity::ALL.len()],
}

impl Exits {
    /// Ticks of one activity.
    #[must_use]
    pub fn ticks_of(&self, activity: Activity) -> u64 {
        place(activity).map_or(0, |at| self.ticks.get(at).copied().unwrap_or(0))
    }

    /// Total ticks of these exits.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.ticks.iter().fold(0, |sum, ticks| sum.saturating_add(*ticks))
    }
}

/// Identifies exits: level, `isa` and code; `None` for an absence that no exit began.
pub(crate) type ExitKey = (u8, u8, u32);
