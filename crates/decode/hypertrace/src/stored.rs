//! A file of frames from memory that a guest shares: docs/formats/shared-streams.md.

use std::collections::BTreeMap;

use crate::frame_words::FrameWords;
use crate::relation::ToHost;

/// Magic bytes of a file of frames.
pub const STORED_MAGIC: [u8; 8] = *b"HSCFRAME";
/// The version of the format.
const VERSION: u64 = 1;
/// Bytes of the file header.
const HEAD_BYTES: usize = 16;
/// Maximum words of a record after its first.
const MAX_RECORD_WORDS: usize = 255;

/// Kinds of records.
mod kind {
    pub(super) const WHOLE: u64 = 1;
    pub(super) const OPEN: u64 = 2;
    pub(super) const RELATION: u64 = 3;
    pub(super) const DAMAGE: u64 = 4;
}

/// Writes records of such a file.
#[derive(Debug)]
pub struct StoredWriter {
    bytes: Vec<u8>,
}

impl Default for StoredWriter {
    fn default() -> Self {
        Self::new()
    }
}

impl StoredWriter {
    /// Starts with the file's header.
    #[must_use]
    pub fn new() -> Self {
        let bytes = [STORED_MAGIC, VERSION.to_le_bytes()].concat();
        Self { bytes }
    }

    /// Adds a frame of a CPU, with its position in the CPU's ring.
    pub fn frame(&mut self, cpu: u16, position: u64, frame: &FrameWords) {
        let kind = if frame.is_whole { kind::WHOLE } else { kind::OPEN };
        self.record(kind, cpu, [position, frame.filled()].iter().chain(frame.used()));
    }

    /// Adds the relation of the TSC of a guest's CPU to the host's; it applies to all frames of the
    /// CPU.
    pub fn relation(&mut self, cpu: u16, relation: ToHost) {
        let ToHost { scaling, fraction, offset } = relation;
        self.record(kind::RELATION, cpu, &[scaling, fraction.into(), offset.cast_unsigned()]);
    }

    /// Adds the number of invalid contents in a CPU's ring.
    pub fn damage(&mut self, cpu: u16, count: u64) {
        self.record(kind::DAMAGE, cpu, &[count]);
    }

    /// The bytes since the last call.
    #[must_use]
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    fn record<'w>(&mut self, kind: u64, cpu: u16, words: impl IntoIterator<Item = &'w u64>) {
        let words: Vec<u64> = words.into_iter().take(MAX_RECORD_WORDS).copied().collect();
        let len = u64::try_from(words.len()).unwrap_or(0);
        let first = kind | len << 8 | u64::from(cpu) << 16;
        for word in std::iter::once(first).chain(words) {
            self.bytes.extend_from_slice(&word.to_le_bytes());
        }
    }
}

/// A file of frames.
#[derive(Debug, Default)]
pub struct Stored<'b> {
    /// The guest's CPUs with data in the file.
    pub cpus: BTreeMap<u16, StoredCpu<'b>>,
    /// Number of invalid or truncated records.
    pub damaged: u64,
}

/// A file's data of one CPU.
#[derive(Debug, Default)]
pub struct StoredCpu<'b> {
    /// The relation of its TSC to the host's, if the writer of the file knew it.
    pub relation: Option<ToHost>,
    /// Its frames, in their order.
    pub frames: Vec<StoredFrame<'b>>,
    /// Number of invalid contents in its ring.
    pub damage: u64,
}

/// A frame in a file.
#[derive(Clone, Copy, Debug)]
pub struct StoredFrame<'b> {
    bytes: &'b [u8],
    is_whole: bool,
}

impl<'b> Stored<'b> {
    /// Parses a file; `None` for other files, or another version.
    #[must_use]
    pub fn read(bytes: &'b [u8]) -> Option<Self> {
        let (head, mut rest) = bytes.split_at_checked(HEAD_BYTES)?;
        if !head.starts_with(&STORED_MAGIC) || word(head, 1) != VERSION {
            return None;
        }
        let mut stored = Self::default();
        // Each iteration consumes at least a word.
        while let Some((first, behind)) = rest.split_first_chunk::<8>() {
            let [kind, len, low, high, ..] = *first;
            let Some((words, behind)) = behind.split_at_checked(usize::from(len).saturating_mul(8))
            else {
                break;
            };
            stored.record(u64::from(kind), u16::from_le_bytes([low, high]), words);
            rest = behind;
        }
        count(&mut stored.damaged, !rest.is_empty());
        Some(stored)
    }

    fn record(&mut self, kind: u64, cpu: u16, bytes: &'b [u8]) {
        let min = match kind {
            kind::WHOLE | kind::OPEN => 16,
            kind::RELATION => 24,
            kind::DAMAGE => 8,
            // A record of a later version, which can be ignored.
            _ => return,
        };
        if bytes.len() < min {
            count(&mut self.damaged, true);
            return;
        }
        match kind {
            kind::WHOLE | kind::OPEN => {
                let frame = StoredFrame { bytes, is_whole: kind == kind::WHOLE };
                self.cpu(cpu).frames.push(frame);
            }
            kind::RELATION => match ToHost::new(word(bytes, 0), word(bytes, 1), word(bytes, 2)) {
                Some(relation) => self.cpu(cpu).relation = Some(relation),
                None => count(&mut self.damaged, true),
            },
            _ => {
                let cpu = self.cpu(cpu);
                cpu.damage = cpu.damage.saturating_add(word(bytes, 0));
            }
        }
    }

    fn cpu(&mut self, cpu: u16) -> &mut StoredCpu<'b> {
        self.cpus.entry(cpu).or_default()
    }
}

impl StoredFrame<'_> {
    /// Number of earlier frames of its CPU.
    #[must_use]
    pub fn position(&self) -> u64 {
        word(self.bytes, 0)
    }

    /// Its words.
    #[must_use]
    pub fn words(&self) -> FrameWords {
        let words = (2..self.bytes.len() / 8).map(|at| word(self.bytes, at));
        FrameWords::new(word(self.bytes, 1), words, self.is_whole)
    }
}

/// A word by index; 0 past the end.
fn word(bytes: &[u8], at: usize) -> u64 {
    let bytes = bytes.chunks_exact(8).nth(at).unwrap_or_default();
    u64::from_le_bytes(bytes.try_into().unwrap_or_default())
}

fn count(sum: &mut u64, condition: bool) {
    *sum = sum.saturating_add(condition.into());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_later_versions_are_no_damage_however_short() {
        let file = |kind, words: &[u64]| {
            let mut writer = StoredWriter::new();
            writer.record(kind, 3, words);
            writer.damage(3, 7);
            writer.take()
        };
        for words in [&[][..], &[1], &[1, 2, 3]] {
            let bytes = file(200, words);
            let stored = Stored::read(&bytes).unwrap();
            let damage = stored.cpus.get(&3).map(|cpu| cpu.damage);
            assert_eq!((stored.damaged, damage), (0, Some(7)), "{words:?}");
        }
        for (kind, words) in
            [(kind::WHOLE, &[1][..]), (kind::RELATION, &[1, 2]), (kind::DAMAGE, &[])]
        {
            let bytes = file(kind, words);
            assert_eq!(Stored::read(&bytes).unwrap().damaged, 1, "{kind}");
        }
    }
}
