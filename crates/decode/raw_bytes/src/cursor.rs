//! A read position in untrusted bytes: every read is checked, and every error has an offset.

use crate::ByteOrder;
use crate::counted::bytes;

/// The bytes ended within a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} needed at offset {offset:#x}, {have} left", bytes(*wanted))]
pub struct Truncated {
    /// Offset of the read in the file or section of the cursor.
    pub offset: u64,
    /// Bytes needed by the read.
    pub wanted: u64,
    /// Remaining bytes.
    pub have: u64,
}

/// A checked reader over borrowed bytes.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    rest: &'a [u8],
    order: ByteOrder,
    offset: u64,
}

impl<'a> Cursor<'a> {
    /// A cursor over `bytes` in byte order `order`; `offset` is their position in the file, for
    /// error messages.
    #[must_use]
    pub fn new(bytes: &'a [u8], order: ByteOrder, offset: u64) -> Self {
        Self { rest: bytes, order, offset }
    }

    /// The offset of the next byte.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The unread bytes.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether all bytes have been read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `len` bytes.
    ///
    /// # Errors
    /// If fewer remain; the position then does not change.
    pub fn take(&mut self, len: u64) -> Result<&'a [u8], Truncated> {
        let split = usize::try_from(len).ok().and_then(|at| self.rest.split_at_checked(at));
        let (head, tail) = split.ok_or(Truncated {
            offset: self.offset,
            wanted: len,
            have: self.rest.len() as u64,
        })?;
        self.rest = tail;
        self.offset = self.offset.saturating_add(len);
        Ok(head)
    }

    fn chunk<const N: usize>(&mut self) -> Result<[u8; N], Truncated> {
        let (head, tail) = self.rest.split_first_chunk().ok_or(Truncated {
            offset: self.offset,
            wanted: N as u64,
            have: self.rest.len() as u64,
        })?;
        self.rest = tail;
        self.offset = self.offset.saturating_add(N as u64);
        Ok(*head)
    }

    /// The next byte.
    ///
    /// # Errors
    /// If none remains.
    pub fn u8(&mut self) -> Result<u8, Truncated> {
        self.chunk().map(|[byte]| byte)
    }

    /// The next two-byte number.
    ///
    /// # Errors
    /// If fewer bytes remain.
    pub fn u16(&mut self) -> Result<u16, Truncated> {
        self.chunk().map(|bytes| self.order.u16(bytes))
    }

    /// The next four-byte number.
    ///
    /// # Errors
    /// If fewer bytes remain.
    pub fn u32(&mut self) -> Result<u32, Truncated> {
        self.chunk().map(|bytes| self.order.u32(bytes))
    }

    /// The next eight-byte number.
    ///
    /// # Errors
    /// If fewer bytes remain.
    pub fn u64(&mut self) -> Result<u64, Truncated> {
        self.chunk().map(|bytes| self.order.u64(bytes))
    }

    /// Consumes a NUL-terminated string; returns it without the NUL.
    ///
    /// # Errors
    /// If no NUL follows.
    pub fn c_str(&mut self) -> Result<&'a [u8], Truncated> {
        let len = self.rest.iter().position(|&byte| byte == 0);
        let have = self.rest.len() as u64;
        let missing = Truncated { offset: self.offset, wanted: have.saturating_add(1), have };
        let text = self.take(len.ok_or(missing)? as u64)?;
        self.u8()?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_read_leaves_the_cursor_where_it_was() {
        let mut cursor = Cursor::new(&[1, 2, 3], ByteOrder::Little, 100);
        assert_eq!(cursor.u16(), Ok(0x0201));
        let error = cursor.u32().unwrap_err();
        assert_eq!(error, Truncated { offset: 102, wanted: 4, have: 1 });
        assert_eq!(cursor.u8(), Ok(3));
        assert!(cursor.is_empty());
    }

    #[test]
    fn a_huge_length_is_an_error() {
        let mut cursor = Cursor::new(&[0; 4], ByteOrder::Big, 0);
        assert!(cursor.take(u64::MAX).is_err());
        assert_eq!(cursor.take(4), Ok(&[0; 4][..]));
    }

    #[test]
    fn strings_end_at_their_nul() {
        let mut cursor = Cursor::new(b"ab\0c", ByteOrder::Big, 0);
        assert_eq!(cursor.c_str(), Ok(&b"ab"[..]));
        assert!(cursor.c_str().is_err());
        assert_eq!(cursor.rest(), b"c");
    }
}
