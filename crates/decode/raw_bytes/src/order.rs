//! Number formats of the recorded machine: byte order and size of a C `long`.

/// Byte order of the recorded machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// Least significant byte first (x86, arm64, riscv).
    Little,
    /// Most significant byte first (s390).
    Big,
}

/// Size of a C `long` on the recorded machine, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LongSize {
    /// 32-bit kernels.
    Four,
    /// 64-bit kernels.
    Eight,
}

impl LongSize {
    /// The size in bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Four => 4,
            Self::Eight => 8,
        }
    }

    /// The `long` of this size; `None` if it is neither 4 nor 8.
    #[must_use]
    pub const fn from_bytes(bytes: u64) -> Option<Self> {
        match bytes {
            4 => Some(Self::Four),
            8 => Some(Self::Eight),
            _ => None,
        }
    }
}

/// Byte order and size of `long`, which are needed to read a recorded number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Abi {
    /// Byte order of the recorded machine.
    pub order: ByteOrder,
    /// Size of a C `long` in its kernel.
    pub long: LongSize,
}

impl ByteOrder {
    /// The unsigned number in two bytes.
    #[inline]
    #[must_use]
    pub const fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        }
    }

    /// The unsigned number in four bytes.
    #[inline]
    #[must_use]
    pub const fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }

    /// The unsigned number in eight bytes.
    #[inline]
    #[must_use]
    pub const fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            Self::Little => u64::from_le_bytes(bytes),
            Self::Big => u64::from_be_bytes(bytes),
        }
    }

    /// The two-byte number at `offset` of `bytes`; `None` past the end.
    #[inline]
    #[must_use]
    pub fn u16_at(self, bytes: &[u8], offset: usize) -> Option<u16> {
        Some(self.u16(*bytes.get(offset..)?.first_chunk()?))
    }

    /// The four-byte number at `offset` of `bytes`; `None` past the end.
    #[inline]
    #[must_use]
    pub fn u32_at(self, bytes: &[u8], offset: usize) -> Option<u32> {
        Some(self.u32(*bytes.get(offset..)?.first_chunk()?))
    }

    /// The eight-byte number at `offset` of `bytes`; `None` past the end.
    #[inline]
    #[must_use]
    pub fn u64_at(self, bytes: &[u8], offset: usize) -> Option<u64> {
        Some(self.u64(*bytes.get(offset..)?.first_chunk()?))
    }

    /// The number of `size` bytes (1, 2, 4 or 8) at `offset`; `None` past the end or for any
    /// other size.
    #[inline]
    #[must_use]
    pub fn uint_at(self, bytes: &[u8], offset: usize, size: usize) -> Option<u64> {
        // If eight bytes can be loaded, no branch depends on the size, which changes from field to
        // field.
        match bytes.get(offset..offset.saturating_add(8)).and_then(<[u8]>::first_chunk) {
            Some(eight) if matches!(size, 1 | 2 | 4 | 8) => {
                let unused = 64u32.wrapping_sub((size as u32).wrapping_mul(8));
                let high = match self {
                    Self::Little => u64::from_le_bytes(*eight).wrapping_shl(unused),
                    Self::Big => u64::from_be_bytes(*eight),
                };
                Some(high.wrapping_shr(unused))
            }
            _ => self.uint_near_end(bytes, offset, size),
        }
    }

    fn uint_near_end(self, bytes: &[u8], offset: usize, size: usize) -> Option<u64> {
        match size {
            1 => bytes.get(offset).map(|&byte| u64::from(byte)),
            2 => self.u16_at(bytes, offset).map(u64::from),
            4 => self.u32_at(bytes, offset).map(u64::from),
            8 => self.u64_at(bytes, offset),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_both_orders() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(ByteOrder::Little.uint_at(&bytes, 0, 4), Some(0x0403_0201));
        assert_eq!(ByteOrder::Big.uint_at(&bytes, 0, 4), Some(0x0102_0304));
        assert_eq!(ByteOrder::Big.uint_at(&bytes, 6, 2), Some(0x0708));
        assert_eq!(ByteOrder::Big.u64_at(&bytes, 0), Some(0x0102_0304_0506_0708));
    }

    #[test]
    fn numbers_are_the_same_near_the_end() {
        let bytes = [0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89];
        for order in [ByteOrder::Little, ByteOrder::Big] {
            for size in 0..10 {
                let short = bytes.get(..size).and_then(|bytes| order.uint_at(bytes, 0, size));
                assert_eq!(order.uint_at(&bytes, 0, size), short);
                assert_eq!(short.is_some(), [1, 2, 4, 8].contains(&size));
            }
        }
    }

    #[test]
    fn reads_past_the_end_are_none() {
        let bytes = [0; 8];
        assert_eq!(ByteOrder::Little.u64_at(&bytes, 1), None);
        assert_eq!(ByteOrder::Little.uint_at(&bytes, usize::MAX, 1), None);
        assert_eq!(ByteOrder::Little.uint_at(&bytes, 0, 3), None);
    }
}
