//! Reads a number of a record at a precomputed position.

use raw_bytes::ByteOrder;

/// The position of a number in every record of an event: all that a hot loop needs of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NumberAt {
    /// Offset from the start of the record.
    pub offset: u32,
    /// Size in bytes: 1, 2, 4 or 8.
    pub size: u8,
    /// Whether the kernel's type is signed.
    pub signed: bool,
}

impl NumberAt {
    /// The number, zero-extended; `None` if the record is too short.
    #[inline]
    #[must_use]
    pub fn read(&self, record: &[u8], order: ByteOrder) -> Option<u64> {
        order.uint_at(record, self.offset as usize, usize::from(self.size))
    }

    /// The number, sign-extended if its type is signed; `None` if the record is too short.
    #[inline]
    #[must_use]
    pub fn read_signed(&self, record: &[u8], order: ByteOrder) -> Option<i64> {
        let raw = self.read(record, order)?;
        Some(if self.signed { sign_extend(raw, self.size) } else { raw.cast_signed() })
    }
}

/// The low `size` bytes (1, 2, 4 or 8) of `raw`, sign-extended.
#[inline]
pub(crate) fn sign_extend(raw: u64, size: u8) -> i64 {
    let unused = unused_bits(size);
    raw.wrapping_shl(unused).cast_signed().wrapping_shr(unused)
}

/// The low `size` bytes (1, 2, 4 or 8) of `raw`, zero-extended.
#[inline]
pub(crate) fn zero_extend(raw: u64, size: u8) -> u64 {
    let unused = unused_bits(size);
    raw.wrapping_shl(unused).wrapping_shr(unused)
}

/// Bits of 64 that a number of `size` bytes does not use.
#[inline]
fn unused_bits(size: u8) -> u32 {
    64u32.wrapping_sub(u32::from(size).wrapping_mul(8))
}

/// Writes the low `size` bytes of `value` at `offset`; `false` if they do not fit.
pub(crate) fn poke(
    record: &mut [u8],
    order: ByteOrder,
    offset: u32,
    size: usize,
    value: u64,
) -> bool {
    let start = offset as usize;
    let Some(bytes) = record.get_mut(start..start.saturating_add(size)) else { return false };
    let all = value.to_le_bytes();
    let Some(low) = all.get(..size) else { return false };
    bytes.copy_from_slice(low);
    if order == ByteOrder::Big {
        bytes.reverse();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_come_from_the_type() {
        let at = NumberAt { offset: 1, size: 2, signed: true };
        let record = [0, 0xff, 0xfe];
        assert_eq!(at.read(&record, ByteOrder::Big), Some(0xfffe));
        assert_eq!(at.read_signed(&record, ByteOrder::Big), Some(-2));
        assert_eq!(
            NumberAt { signed: false, ..at }.read_signed(&record, ByteOrder::Big),
            Some(0xfffe)
        );
        assert_eq!(at.read(&record[..2], ByteOrder::Big), None);
    }

    #[test]
    fn numbers_are_filled_up() {
        for (size, signed, unsigned) in
            [(1, -1, 0xff), (2, -0x101, 0xfeff), (4, -0x101, 0xffff_feff), (8, -0x101, !0x100)]
        {
            assert_eq!(sign_extend(!0x100, size), signed);
            assert_eq!(zero_extend(!0x100, size), unsigned);
        }
    }

    #[test]
    fn what_is_poked_is_read_back() {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let mut record = [0; 6];
            assert!(poke(&mut record, order, 2, 4, 0x8001_0203));
            let at = NumberAt { offset: 2, size: 4, signed: false };
            assert_eq!(at.read(&record, order), Some(0x8001_0203));
            assert!(!poke(&mut record, order, 3, 4, 0));
            assert!(!poke(&mut record, order, u32::MAX, 4, 0));
            assert!(!poke(&mut record, order, 0, 16, 0));
        }
    }
}
