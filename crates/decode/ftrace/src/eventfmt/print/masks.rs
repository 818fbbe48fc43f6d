//! Bitmasks and cpumasks as text.

use raw_bytes::ByteOrder;

use super::eval::Record;
use crate::eventfmt::digits::{self, Radix};

/// Byte `index` of a mask, counted from its low end.
///
/// The kernel stores a mask as longs, low ones first; big endian reverses the bytes of each.
fn byte(bytes: &[u8], record: Record<'_>, index: usize) -> u8 {
    let last = record.long.bytes().saturating_sub(1);
    let at = match record.order {
        ByteOrder::Little => index,
        ByteOrder::Big => index ^ last,
    };
    bytes.get(at).copied().unwrap_or(0)
}

/// Appends `bits` bits in hex, high bits first, with a comma after every 32.
pub(super) fn words(out: &mut Vec<u8>, record: Record<'_>, bytes: &[u8], bits: usize) {
    for index in (0..bits.div_ceil(8).min(bytes.len())).rev() {
        digits::hex_byte(out, byte(bytes, record, index));
        if index > 0 && index.is_multiple_of(4) {
            out.push(b',');
        }
    }
}

/// Appends the numbers of the set bits, runs as `first-last`.
pub(super) fn list(out: &mut Vec<u8>, record: Record<'_>, bytes: &[u8], bits: usize) {
    let bits = bits.min(bytes.len().saturating_mul(8));
    let set = |bit: usize| bit < bits && byte(bytes, record, bit / 8) >> (bit % 8) & 1 == 1;
    let mut bit = 0usize;
    let mut first_run = true;
    while bit < bits {
        if !set(bit) {
            bit = bit.saturating_add(1);
            continue;
        }
        let first = bit;
        while set(bit) {
            bit = bit.saturating_add(1);
        }
        if !std::mem::take(&mut first_run) {
            out.push(b',');
        }
        digits::plain(out, first as u64, Radix::Decimal);
        let last = bit.saturating_sub(1);
        if last > first {
            out.push(b'-');
            digits::plain(out, last as u64, Radix::Decimal);
        }
    }
}

#[cfg(test)]
mod tests {
    use raw_bytes::{Abi, LongSize};

    use super::*;

    const MASK: [u64; 2] = [0x2_0000_01f1, 0x30];

    fn text(write: fn(&mut Vec<u8>, Record<'_>, &[u8], usize), order: ByteOrder) -> String {
        let bytes = MASK.map(|long| match order {
            ByteOrder::Little => long.to_le_bytes(),
            ByteOrder::Big => long.to_be_bytes(),
        });
        let record = Record::new(&[], Abi { order, long: LongSize::Eight });
        let mut out = Vec::new();
        write(&mut out, record, bytes.as_flattened(), 72);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn masks_are_shown_in_both_forms() {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            assert_eq!(text(words, order), "30,00000002,000001f1");
            assert_eq!(text(list, order), "0,4-8,33,68-69");
        }
    }

    #[test]
    fn empty_masks_show_nothing() {
        let record = Record::new(&[], Abi { order: ByteOrder::Little, long: LongSize::Four });
        let mut out = Vec::new();
        list(&mut out, record, &[0; 8], 64);
        words(&mut out, record, &[], 0);
        assert!(out.is_empty());
    }
}
