//! Build ids: what names a kernel, program or library whatever its path.

use std::fmt;

/// A build id: 20 bytes, or fewer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BuildId {
    bytes: [u8; 20],
    len: u8,
}

impl BuildId {
    /// That of `bytes`, of which the first 20 count.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        let mut id = Self { bytes: [0; 20], len: 0 };
        for (slot, byte) in id.bytes.iter_mut().zip(bytes) {
            *slot = *byte;
            id.len = id.len.saturating_add(1);
        }
        id
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
