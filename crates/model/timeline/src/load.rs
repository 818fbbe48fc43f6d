//! Reads a number at a known offset with one load and one mask, independent of its size.

use ftrace::eventfmt::NumberAt;
use raw_bytes::ByteOrder;

/// The position of a number in a record, prepared for the hot loop: eight bytes are loaded, and
/// other bits are masked (little endian) or shifted (big endian) away.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    mask: u64,
    at: NumberAt,
}

impl Load {
    /// The position of a number that is not in the record: it is always 0.
    pub(crate) const ABSENT: Self =
        Self { mask: 0, at: NumberAt { offset: 0, size: 1, signed: false } };

    pub(crate) fn new(at: NumberAt) -> Self {
        let bits = u32::from(at.size.clamp(1, 8)) * 8;
        Self { mask: u64::MAX >> (64 - bits), at }
    }

    /// The number, zero-extended; `None` if the record is too short.
    #[inline]
    pub(crate) fn read<const BIG: bool>(&self, record: &[u8]) -> Option<u64> {
        self.read_inside::<BIG>(record).or_else(|| self.read_near_end::<BIG>(record))
    }

    /// The number, sign-extended if its type is signed; `None` if the record is too short.
    #[inline]
    pub(crate) fn read_signed<const BIG: bool>(&self, record: &[u8]) -> Option<u64> {
        let number = self.read::<BIG>(record)?;
        let unused = if self.at.signed { self.mask.leading_zeros() } else { 0 };
        Some((number << unused).cast_signed().wrapping_shr(unused).cast_unsigned())
    }

    /// The number; also `None` if it is so near the end of the record that eight bytes cannot be
    /// loaded.
    #[inline(always)]
    pub(crate) fn read_inside<const BIG: bool>(&self, record: &[u8]) -> Option<u64> {
        let offset = self.at.offset as usize;
        let bytes = *record.get(offset..offset.saturating_add(8))?.first_chunk()?;
        Some(if BIG {
            u64::from_be_bytes(bytes).wrapping_shr(self.mask.leading_zeros()) & self.mask
        } else {
            u64::from_le_bytes(bytes) & self.mask
        })
    }

    #[cold]
    fn read_near_end<const BIG: bool>(&self, record: &[u8]) -> Option<u64> {
        let order = if BIG { ByteOrder::Big } else { ByteOrder::Little };
        Some(self.at.read(record, order)? & self.mask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_equal_plain_reads() {
        let record: Vec<u8> = (1..=19).map(|byte| byte * 13).collect();
        for size in [1u8, 2, 4, 8] {
            for offset in 0..24 {
                let at = NumberAt { offset, size, signed: false };
                let load = Load::new(at);
                assert_eq!(load.read::<false>(&record), at.read(&record, ByteOrder::Little));
                assert_eq!(load.read::<true>(&record), at.read(&record, ByteOrder::Big));
                for (order, signed) in [
                    (ByteOrder::Little, true),
                    (ByteOrder::Little, false),
                    (ByteOrder::Big, true),
                    (ByteOrder::Big, false),
                ] {
                    let at = NumberAt { signed, ..at };
                    let plain = at.read_signed(&record, order).map(i64::cast_unsigned);
                    let load = Load::new(at);
                    let read = match order {
                        ByteOrder::Little => load.read_signed::<false>(&record),
                        ByteOrder::Big => load.read_signed::<true>(&record),
                    };
                    assert_eq!(read, plain);
                }
            }
        }
        assert_eq!(Load::ABSENT.read::<true>(&record), Some(0));
    }
}
