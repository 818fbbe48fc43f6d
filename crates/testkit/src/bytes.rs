//! Writes numbers in the byte order and long size of a recorded machine.

use raw_bytes::{Abi, ByteOrder, LongSize};

/// The low `size` bytes of `value` in the machine's order.
pub(crate) fn uint(order: ByteOrder, value: u64, size: usize) -> Vec<u8> {
    match order {
        ByteOrder::Little => value.to_le_bytes()[..size].to_vec(),
        ByteOrder::Big => value.to_be_bytes()[8 - size..].to_vec(),
    }
}

/// A 32-bit word in the machine's order.
pub(crate) fn word(order: ByteOrder, value: u32) -> Vec<u8> {
    uint(order, u64::from(value), 4)
}

/// A `long` of the machine.
pub(crate) fn long(abi: Abi, value: u64) -> Vec<u8> {
    uint(abi.order, value, long_bytes(abi))
}

/// Bytes of a `long`, spelled out here so that a wrong `LongSize::bytes` shows.
pub(crate) fn long_bytes(abi: Abi) -> usize {
    match abi.long {
        LongSize::Four => 4,
        LongSize::Eight => 8,
    }
}
