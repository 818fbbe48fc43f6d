//! The first word of a ring-buffer record: type and time delta.

use raw_bytes::ByteOrder;

use crate::bytes;

/// Largest delta that the first word of a record can hold.
pub const MAX_DELTA: u32 = (1 << 27) - 1;

pub(crate) const LONG_DATA: u32 = 0;
pub(crate) const MAX_SHORT_DATA: usize = 28 * 4;
pub(crate) const PADDING: u32 = 29;
pub(crate) const TIME_EXTEND: u32 = 30;
pub(crate) const TIME_STAMP: u32 = 31;

/// The word for `type_len` and `delta`: C bit-fields of 5 and 27 bits, which compilers allocate
/// from the least significant bit on little-endian machines and from the most significant bit on
/// big-endian machines.
pub(crate) fn encode(order: ByteOrder, type_len: u32, delta: u32) -> Vec<u8> {
    assert!(type_len < 32, "type_len {type_len} takes more than 5 bits");
    assert!(delta <= MAX_DELTA, "delta {delta} takes more than 27 bits");
    bytes::word(
        order,
        match order {
            ByteOrder::Little => delta << 5 | type_len,
            ByteOrder::Big => type_len << 27 | delta,
        },
    )
}
