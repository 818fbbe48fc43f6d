//! Sequences of eight-byte numbers, read in place; and fields of a record made of them.

use raw_bytes::{ByteOrder, Cursor, Truncated};

/// A sequence of eight-byte numbers in the file's byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words<'f> {
    bytes: &'f [u8],
    order: ByteOrder,
}

impl Default for Words<'_> {
    fn default() -> Self {
        Self { bytes: &[], order: ByteOrder::Little }
    }
}

impl<'f> Words<'f> {
    /// The numbers in `bytes`; ignores a partial number at the end.
    pub(crate) fn new(bytes: &'f [u8], order: ByteOrder) -> Self {
        Self { bytes, order }
    }

    /// The number of words.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len().checked_div(8).unwrap_or(0)
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number at an index.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<u64> {
        self.order.u64_at(self.bytes, index.checked_mul(8)?)
    }

    /// All numbers in order.
    pub fn iter(&self) -> impl Iterator<Item = u64> + use<'f> {
        self.from(0)
    }

    /// The numbers from an index on.
    pub(crate) fn from(&self, index: usize) -> impl Iterator<Item = u64> + use<'f> {
        let order = self.order;
        let words = self.bytes.chunks_exact(8).skip(index);
        words.filter_map(move |word| order.u64_at(word, 0))
    }
}

/// The fields of a record, most of which are optional.
#[derive(Debug)]
pub(crate) struct Fields<'f> {
    pub(crate) cursor: Cursor<'f>,
    order: ByteOrder,
}

impl<'f> Fields<'f> {
    pub(crate) fn new(cursor: Cursor<'f>, order: ByteOrder) -> Self {
        Self { cursor, order }
    }

    pub(crate) fn word(&mut self) -> Result<u64, Truncated> {
        self.cursor.u64()
    }

    pub(crate) fn word_if(&mut self, there: bool) -> Result<Option<u64>, Truncated> {
        if there { self.cursor.u64().map(Some) } else { Ok(None) }
    }

    /// Two numbers of four bytes.
    pub(crate) fn pair_if(&mut self, there: bool) -> Result<Option<(u32, u32)>, Truncated> {
        if !there {
            return Ok(None);
        }
        Ok(Some((self.cursor.u32()?, self.cursor.u32()?)))
    }

    pub(crate) fn words(&mut self, count: u64) -> Result<Words<'f>, Truncated> {
        Ok(Words::new(self.cursor.take(count.saturating_mul(8))?, self.order))
    }

    /// A count, followed by that many numbers.
    pub(crate) fn counted_words(&mut self) -> Result<Words<'f>, Truncated> {
        let count = self.cursor.u64()?;
        self.words(count)
    }

    /// A size in eight bytes, followed by that many bytes.
    pub(crate) fn sized(&mut self) -> Result<&'f [u8], Truncated> {
        let size = self.cursor.u64()?;
        self.cursor.take(size)
    }
}
