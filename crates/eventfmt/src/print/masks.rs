//! Bitmasks and cpumasks as text.

use abi::ByteOrder;

use crate::digits::{self, Radix};

/// Byte `index` of a mask, counted from its low end.
///
/// The kernel keeps a mask in longs, low ones first; in big endian the bytes of each are turned.
/// Recordings do not say how long a long was here, and readers agree to turn the whole mask.
fn byte(bytes: &[u8], order: ByteOrder, index: usize) -> u8 {
    let at = match order {
        ByteOrder::Little => Some(index),
        ByteOrder::Big => bytes.len().checked_sub(index).and_then(|at| at.checked_sub(1)),
    };
    at.and_then(|at| bytes.get(at)).copied().unwrap_or(0)
}

/// Appends `bits` bits in hex, high ones first, with a comma at every 32.
pub(super) fn words(out: &mut Vec<u8>, bytes: &[u8], order: ByteOrder, bits: usize) {
    for index in (0..bits.div_ceil(8).min(bytes.len())).rev() {
        digits::hex_byte(out, byte(bytes, order, index));
        if index > 0 && index.is_multiple_of(4) {
            out.push(b',');
        }
    }
}

/// Appends the numbers of the bits that are set, runs as `first-last`.
pub(super) fn list(out: &mut Vec<u8>, bytes: &[u8], order: ByteOrder, bits: usize) {
    let bits = bits.min(bytes.len().saturating_mul(8));
    let set = |bit: usize| bit < bits && byte(bytes, order, bit / 8) >> (bit % 8) & 1 == 1;
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
    use super::*;

    const MASK: [u8; 8] = [0b1111_0001, 1, 0, 0, 2, 0, 0, 0];

    fn text(write: fn(&mut Vec<u8>, &[u8], ByteOrder, usize), order: ByteOrder) -> String {
        let mut mask = MASK;
        if order == ByteOrder::Big {
            mask.reverse();
        }
        let mut out = Vec::new();
        write(&mut out, &mask, order, 64);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn masks_are_shown_in_both_forms() {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            assert_eq!(text(words, order), "00000002,000001f1");
            assert_eq!(text(list, order), "0,4-8,33");
        }
    }

    #[test]
    fn empty_masks_show_nothing() {
        let mut out = Vec::new();
        list(&mut out, &[0; 8], ByteOrder::Little, 64);
        words(&mut out, &[], ByteOrder::Little, 0);
        assert!(out.is_empty());
    }
}
