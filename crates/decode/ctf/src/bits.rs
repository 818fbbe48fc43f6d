//! Reads integers of any size at any bit of a packet, in either byte order.

use std::ffi::CStr;

use raw_bytes::ByteOrder;

use crate::Short;

/// A read position in a packet, in bits from its start.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    at: u64,
    end: u64,
}

impl<'a> Cursor<'a> {
    /// A cursor at bit `at` of a packet whose content ends at bit `end`.
    #[must_use]
    pub fn new(bytes: &'a [u8], at: u64, end: u64) -> Self {
        let have = (bytes.len() as u64).saturating_mul(8);
        Self { bytes, at, end: end.min(have) }
    }

    /// The current bit.
    #[must_use]
    pub fn at(&self) -> u64 {
        self.at
    }

    /// The number of remaining content bits.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.end.saturating_sub(self.at)
    }

    /// Advances to the next multiple of `to` bits, a power of two.
    ///
    /// # Errors
    /// If the content ends before it.
    #[inline]
    pub fn align(&mut self, to: u32) -> Result<(), Short> {
        self.align_below(u64::from(to.max(1)) - 1)
    }

    /// Advances to an aligned position; `below` is the alignment minus one.
    #[inline]
    pub(crate) fn align_below(&mut self, below: u64) -> Result<(), Short> {
        let at = self.at.saturating_add(below) & !below;
        if at > self.end {
            return Err(self.short());
        }
        self.at = at;
        Ok(())
    }

    /// Skips `bits`, and returns the bit at which they begin.
    ///
    /// # Errors
    /// If fewer bits remain.
    #[inline]
    pub fn take(&mut self, bits: u64) -> Result<u64, Short> {
        let from = self.at;
        match from.checked_add(bits) {
            Some(to) if to <= self.end => self.at = to,
            _ => return Err(self.short()),
        }
        Ok(from)
    }

    /// Consumes whole bytes; the position must be byte-aligned.
    ///
    /// # Errors
    /// If fewer bytes remain, or if the position is not byte-aligned.
    #[inline]
    pub fn take_bytes(&mut self, len: u64) -> Result<&'a [u8], Short> {
        let from = self.take(len.saturating_mul(8))?;
        bytes_at(self.bytes, from, len).ok_or(Short { at: from, what: "bytes are not aligned" })
    }

    /// Consumes the bytes up to a NUL, and the NUL; the position must be byte-aligned.
    ///
    /// # Errors
    /// If there is no NUL.
    #[inline]
    pub fn take_text(&mut self) -> Result<&'a [u8], Short> {
        let len = self.remaining() / 8;
        let rest = bytes_at(self.bytes, self.at, len).ok_or_else(|| self.short())?;
        // The library searches word by word.
        let text = CStr::from_bytes_until_nul(rest);
        let text = text.map_err(|_| Short { at: self.at, what: "a string has no end" })?;
        self.at = self.at.saturating_add((text.count_bytes() as u64 + 1).saturating_mul(8));
        Ok(text.to_bytes())
    }

    /// The integer of `bits` at bit `at`, independent of the position.
    #[inline]
    #[must_use]
    pub fn unsigned_at(&self, at: u64, bits: u32, order: ByteOrder) -> Option<u64> {
        unsigned(self.bytes, at, bits, order)
    }

    /// Whole bytes at a byte-aligned bit.
    #[inline]
    #[must_use]
    pub fn bytes_at(&self, at: u64, len: u64) -> Option<&'a [u8]> {
        bytes_at(self.bytes, at, len)
    }

    /// All bytes of the packet, and the end of its content.
    #[inline]
    pub(crate) fn all(&self) -> (&'a [u8], u64) {
        (self.bytes, self.end)
    }

    /// Moves to a bit of the content.
    #[inline]
    pub(crate) fn go_to(&mut self, at: u64) {
        debug_assert!(at <= self.end.max(self.at), "a bit lies beyond the content");
        self.at = at;
    }

    fn short(&self) -> Short {
        Short { at: self.at, what: "the packet's content ends within an event" }
    }
}

#[inline]
fn bytes_at(bytes: &[u8], at: u64, len: u64) -> Option<&[u8]> {
    if !at.is_multiple_of(8) {
        return None;
    }
    let from = usize::try_from(at / 8).ok()?;
    let to = from.checked_add(usize::try_from(len).ok()?)?;
    bytes.get(from..to)
}

/// The integer of `bits` (at most 64) at bit `at`. Little endian starts with the lowest bit of a
/// byte, big endian with the highest.
#[inline]
pub(crate) fn unsigned(bytes: &[u8], at: u64, bits: u32, order: ByteOrder) -> Option<u64> {
    let from = usize::try_from(at / 8).ok()?;
    if at.is_multiple_of(8) {
        let rest = bytes.get(from..)?;
        match bits {
            8 => return rest.first().map(|&byte| u64::from(byte)),
            16 => return rest.first_chunk().map(|&two| u64::from(order.u16(two))),
            32 => return rest.first_chunk().map(|&four| u64::from(order.u32(four))),
            64 => return rest.first_chunk().map(|&eight| order.u64(eight)),
            _ => {}
        }
    }
    any(bytes, from, (at % 8) as u32, bits.min(64), order)
}

fn any(bytes: &[u8], from: usize, skip: u32, bits: u32, order: ByteOrder) -> Option<u64> {
    let end = skip + bits;
    let part = bytes.get(from..from.checked_add(end.div_ceil(8) as usize)?)?;
    let wide = match order {
        ByteOrder::Little => {
            part.iter().rev().fold(0_u128, |wide, &byte| wide << 8 | u128::from(byte)) >> skip
        }
        ByteOrder::Big => {
            let wide = part.iter().fold(0_u128, |wide, &byte| wide << 8 | u128::from(byte));
            wide >> (end.div_ceil(8) * 8 - end)
        }
    };
    Some((wide & ((1_u128 << bits) - 1)) as u64)
}

/// The same bits, sign-extended to 64 bits.
#[inline]
pub(crate) fn signed(value: u64, bits: u32) -> i64 {
    let above = 64_u32.saturating_sub(bits).min(63);
    (value << above).cast_signed() >> above
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_counted_from_the_lowest_or_from_the_highest() {
        let bytes = [0b1010_0110, 0b0101_1100, 0xff];
        assert_eq!(unsigned(&bytes, 0, 5, ByteOrder::Little), Some(0b0_0110));
        assert_eq!(unsigned(&bytes, 5, 6, ByteOrder::Little), Some(0b100_101));
        assert_eq!(unsigned(&bytes, 0, 5, ByteOrder::Big), Some(0b1_0100));
        assert_eq!(unsigned(&bytes, 5, 6, ByteOrder::Big), Some(0b110_010));
        assert_eq!(unsigned(&bytes, 16, 8, ByteOrder::Big), Some(0xff));
        assert_eq!(unsigned(&bytes, 17, 8, ByteOrder::Big), None);
        assert_eq!(unsigned(&[0xff; 9], 1, 64, ByteOrder::Little), Some(u64::MAX));
        assert_eq!(signed(0b1_0100, 5), -12);
        assert_eq!(signed(u64::MAX, 64), -1);
    }

    #[test]
    fn a_cursor_stays_within_the_content() {
        let mut cursor = Cursor::new(&[1, 2, 0, 3], 0, 100);
        assert_eq!(cursor.remaining(), 32);
        assert_eq!(cursor.take(3), Ok(0));
        assert!(cursor.take_bytes(1).is_err());
        cursor.align(8).unwrap();
        assert_eq!((cursor.at(), cursor.take_text().unwrap()), (16, &b""[..]));
        assert!(cursor.take_text().is_err());
        assert!(cursor.align(64).is_err());
    }
}
