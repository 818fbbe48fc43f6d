//! Unreadable parts of an input, and their positions.

use std::fmt;

/// Damage in an input; the rest was read normally.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Offset in the file in bytes; for compressed data, of its chunk.
    pub offset: u64,
    /// CPU of the damaged pages, if the damage is in pages.
    pub cpu: Option<u32>,
    /// Description of the damage.
    pub what: String,
}

impl Damage {
    /// Damage in the pages of a CPU.
    #[must_use]
    pub fn on_cpu(cpu: u32, offset: u64, what: String) -> Self {
        Self { offset, cpu: Some(cpu), what }
    }

    /// Damage outside the pages.
    #[must_use]
    pub fn at(offset: u64, what: String) -> Self {
        Self { offset, cpu: None, what }
    }
}

impl From<raw_bytes::Damage> for Damage {
    fn from(damage: raw_bytes::Damage) -> Self {
        Self::at(damage.offset, damage.what)
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "offset {:#x}", self.offset)?;
        if let Some(cpu) = self.cpu {
            write!(f, ", CPU {cpu}")?;
        }
        write!(f, ": {}", self.what)
    }
}

/// Maximum damages that are stored with their text.
const MAX_KEPT: usize = 100;

/// Damages of a recording. The first are stored, the rest are counted, so that a garbage file needs
/// little memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damages {
    list: Vec<Damage>,
    more: u64,
}

impl Damages {
    /// The stored damages.
    #[must_use]
    pub fn as_slice(&self) -> &[Damage] {
        &self.list
    }

    /// Number of damages that are not stored.
    #[must_use]
    pub fn more(&self) -> u64 {
        self.more
    }

    /// Total number of damages.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.list.len() as u64 + self.more
    }
}

impl Extend<Damage> for Damages {
    fn extend<I: IntoIterator<Item = Damage>>(&mut self, damages: I) {
        for damage in damages {
            if self.list.len() < MAX_KEPT {
                self.list.push(damage);
            } else {
                self.more += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damages_beyond_the_first_are_counted() {
        let mut damages = Damages::default();
        damages.extend((0..250).map(|offset| Damage::at(offset, "bad".to_owned())));
        assert_eq!((damages.as_slice().len(), damages.more(), damages.count()), (100, 150, 250));
        assert_eq!(damages.as_slice().last().map(|damage| damage.offset), Some(99));
    }
}
