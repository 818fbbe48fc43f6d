//! Build ids, which identify a kernel, program or library independent of its path.

use std::fmt;

use raw_bytes::{ByteOrder, slice};

/// `NT_GNU_BUILD_ID`, and the owner of this note type.
const NOTE_TYPE: u32 = 3;
const OWNER: &[u8] = b"GNU\0";
/// Bytes of a note before its owner: length of the owner, length of the content, type.
const NOTE_HEAD_BYTES: u64 = 12;
/// Maximum bytes of a build id in the kernel and perf.
const LONGEST: u64 = 20;

/// A build id of at most 20 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BuildId {
    bytes: [u8; 20],
    len: u8,
}

impl BuildId {
    /// The build id in `bytes`; only the first 20 bytes count.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        let mut id = Self { bytes: [0; 20], len: 0 };
        for (slot, byte) in id.bytes.iter_mut().zip(bytes) {
            *slot = *byte;
            id.len = id.len.saturating_add(1);
        }
        id
    }

    /// The build id in ELF notes, whose parts are padded to `step` bytes.
    #[must_use]
    pub fn in_notes(notes: &[u8], order: ByteOrder, step: u64) -> Option<Self> {
        let mut at = 0_u64;
        loop {
            let note = slice::from(notes, at);
            let len = |at| order.u32_at(note, at).map(u64::from);
            let (owner, text, kind) = (len(0)?, len(4)?, order.u32_at(note, 8)?);
            // Lengths below 2^32 cannot overflow the sum.
            let text_at = NOTE_HEAD_BYTES.saturating_add(owner).checked_next_multiple_of(step)?;
            if kind == NOTE_TYPE && slice::range(note, NOTE_HEAD_BYTES, owner) == OWNER {
                let id = slice::range(note, text_at, text);
                let is_whole = id.len() as u64 == text && (1..=LONGEST).contains(&text);
                return is_whole.then(|| Self::new(id));
            }
            at = at.saturating_add(text_at.saturating_add(text).checked_next_multiple_of(step)?);
        }
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BuildId({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_id(notes: &[u8]) -> Option<BuildId> {
        BuildId::in_notes(notes, ByteOrder::Little, 4)
    }

    fn note(kind: u32, name: &[u8], description: &[u8]) -> Vec<u8> {
        let mut note = Vec::new();
        let [name_len, len] = [name, description].map(|part| u32::try_from(part.len()).unwrap());
        for number in [name_len, len, kind] {
            note.extend(number.to_le_bytes());
        }
        for part in [name, description] {
            note.extend(part);
            note.resize(note.len().next_multiple_of(4), 0);
        }
        note
    }

    #[test]
    fn the_build_id_is_among_other_notes() {
        let id = [7_u8; 20];
        let notes =
            [note(NOTE_TYPE, b"Xen\0", &[1]), note(257, OWNER, b"x"), note(NOTE_TYPE, OWNER, &id)];
        let notes = notes.concat();
        assert_eq!(build_id(&notes), Some(BuildId::new(&id)));
        for cut in 0..notes.len() {
            assert_eq!(build_id(notes.get(..cut).unwrap()), None, "{cut}");
        }
        assert_eq!(build_id(&[0xff; 40]), None);
    }
}
