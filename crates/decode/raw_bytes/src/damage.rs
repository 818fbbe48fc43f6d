//! What is wrong with a file that is read all the same, and where.

use crate::Truncated;

/// A part of the file that is missing or wrong; the rest is given as if nothing had happened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at offset {offset:#x}: {what}")]
pub struct Damage {
    /// Where in the file, in bytes.
    pub offset: u64,
    /// What is wrong there and what was done about it.
    pub what: String,
}

impl Damage {
    /// Damage at an offset.
    pub fn new(offset: u64, what: impl Into<String>) -> Self {
        Self { offset, what: what.into() }
    }

    /// Bytes that ended within `what`.
    #[must_use]
    pub fn short(what: &str, cut: Truncated) -> Self {
        let Truncated { offset, wanted, have } = cut;
        Self::new(offset, format!("{what}: {wanted} bytes wanted, {have} left"))
    }
}

/// Damages past this many are counted, not kept: a hostile file must not fill memory with them.
const MOST_KEPT: usize = 1000;

/// The damages of one file, in the order they were found.
#[derive(Clone, Debug, Default)]
pub struct Damages {
    kept: Vec<Damage>,
    more: u64,
}

impl Damages {
    /// Takes one more.
    pub fn add(&mut self, damage: Damage) {
        if self.kept.len() < MOST_KEPT {
            self.kept.push(damage);
        } else {
            self.more = self.more.saturating_add(1);
        }
    }

    /// Takes one more, by what is wrong at an offset.
    pub fn note(&mut self, offset: u64, what: impl Into<String>) {
        self.add(Damage::new(offset, what));
    }

    /// The value, or `None` with its damage noted.
    pub fn keep<T>(&mut self, result: Result<T, Damage>) -> Option<T> {
        result.map_err(|damage| self.add(damage)).ok()
    }

    /// Those that are kept, and at last how many more there were.
    #[must_use]
    pub fn into_vec(mut self) -> Vec<Damage> {
        if self.more > 0 {
            let last = self.kept.last().map_or(0, |damage| damage.offset);
            self.kept.push(Damage::new(last, format!("{} further damages not listed", self.more)));
        }
        self.kept
    }
}
