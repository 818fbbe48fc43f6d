//! Damage in a file that does not prevent reading the rest.

use crate::Truncated;
use crate::counted::{bytes, counted};

/// A missing or damaged part of a file; the rest is read normally.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at offset {offset:#x}: {what}")]
pub struct Damage {
    /// Offset in the file in bytes.
    pub offset: u64,
    /// Description of the damage and its effect.
    pub what: String,
    /// The truncated read, if the damage is a truncation.
    pub cut: Option<Truncated>,
}

/// Maximum plausible length in damaged bytes: no recording is longer.
const MAX_CLAIMED: u64 = 1 << 48;

/// The original length of a truncated file: the maximum that its damages imply. `None` if no damage
/// is a truncation at the end of the file.
#[must_use]
pub fn claimed_len<'d>(damages: impl IntoIterator<Item = &'d Damage>, len: u64) -> Option<u64> {
    let claim = |cut: Truncated| {
        // Ignores offsets in decompressed data, which does not end with the file.
        let is_at_end = cut.offset >= len || cut.offset.saturating_add(cut.have) == len;
        let end = cut.offset.saturating_add(cut.wanted);
        (is_at_end && end > len && end <= MAX_CLAIMED).then_some(end)
    };
    damages.into_iter().filter_map(|damage| claim(damage.cut?)).max()
}

impl Damage {
    /// Damage at an offset.
    pub fn new(offset: u64, what: impl Into<String>) -> Self {
        Self { offset, what: what.into(), cut: None }
    }

    /// A truncation within `what`.
    #[must_use]
    pub fn short(what: &str, cut: Truncated) -> Self {
        let Truncated { offset, wanted, have } = cut;
        Self::new(offset, format!("{what}: {} needed, {have} left", bytes(wanted))).of_cut(cut)
    }

    /// Marks the damage as a truncation.
    #[must_use]
    pub fn of_cut(self, cut: Truncated) -> Self {
        Self { cut: Some(cut), ..self }
    }
}

/// Maximum stored damages; more are only counted, so that a hostile file cannot fill memory.
const MAX_KEPT: usize = 1000;

/// The damages of a file in order of detection.
#[derive(Clone, Debug, Default)]
pub struct Damages {
    list: Vec<Damage>,
    more: u64,
}

impl Damages {
    /// Adds a damage.
    pub fn add(&mut self, damage: Damage) {
        if self.list.len() < MAX_KEPT {
            self.list.push(damage);
        } else {
            self.more = self.more.saturating_add(1);
        }
    }

    /// Adds a damage from its offset and description.
    pub fn note(&mut self, offset: u64, what: impl Into<String>) {
        self.add(Damage::new(offset, what));
    }

    /// The value; records the damage and returns `None` on an error.
    pub fn keep<T>(&mut self, result: Result<T, Damage>) -> Option<T> {
        result.map_err(|damage| self.add(damage)).ok()
    }

    /// The stored damages, and a final one with the number of the others.
    #[must_use]
    pub fn into_vec(mut self) -> Vec<Damage> {
        if self.more > 0 {
            let last = self.list.last().map_or(0, |damage| damage.offset);
            let more = counted(self.more, "further damage", "further damages");
            self.list.push(Damage::new(last, more + " not listed"));
        }
        self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural() {
        let shown = |number: u64| (bytes(number), counted(number, "line is", "lines are"));
        assert_eq!(shown(1), ("1 byte".to_owned(), "1 line is".to_owned()));
        assert_eq!(shown(0), ("0 bytes".to_owned(), "0 lines are".to_owned()));
        let cut = Truncated { offset: 9, wanted: 1, have: 0 };
        assert_eq!(Damage::short("part", cut).what, "part: 1 byte needed, 0 left");
        assert_eq!(cut.to_string(), "1 byte needed at offset 0x9, 0 left");
    }

    #[test]
    fn the_part_that_reaches_furthest_past_the_end_says_how_long_a_file_was() {
        let cut = |offset, wanted, have| Damage::short("part", Truncated { offset, wanted, have });
        let claimed = |damages: &[Damage]| claimed_len(damages, 100);
        assert_eq!(claimed(&[cut(90, 20, 10), cut(400, 16, 0)]), Some(416));
        // Within decompressed data; implausible length; no truncation.
        assert_eq!(claimed(&[cut(10, 200, 5)]), None);
        assert_eq!(claimed(&[cut(90, u64::MAX, 10)]), None);
        assert_eq!(claimed(&[Damage::new(100, "bad")]), None);
    }
}
