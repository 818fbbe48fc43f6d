//! Variable-length numbers: seven bits per byte, lowest first; the eighth bit means that more bytes
//! follow (LEB128, protobuf's varint).

/// Maximum bytes of a number.
pub const NUMBER_BYTES: usize = 10;

/// Maximum bytes of the fast path.
const AT_ONCE: usize = 8;
/// The continuation bit of each byte.
const MARKS: u64 = 0x8080_8080_8080_8080;

/// Appends a number.
#[inline]
pub fn put(out: &mut Vec<u8>, value: u64) {
    if value < 0x80 {
        return out.push(value as u8);
    }
    match short(value) {
        Some((bytes, used)) => append_first(out, bytes.to_le_bytes(), used),
        None => put_long(out, value),
    }
}

/// Appends a byte and a number.
#[inline]
pub fn put_after(out: &mut Vec<u8>, before: u8, value: u64) {
    if value < 0x80 {
        return out.extend_from_slice(&[before, value as u8]);
    }
    match short(value) {
        Some((bytes, used)) => {
            let all = u128::from(bytes) << 8 | u128::from(before);
            append_first(out, all.to_le_bytes(), used.saturating_add(1));
        }
        None => {
            out.push(before);
            put_long(out, value);
        }
    }
}

/// Encoded size of a number in bytes.
#[inline]
#[must_use]
pub fn length(value: u64) -> usize {
    bits(value).div_ceil(7) as usize
}

#[inline]
fn bits(value: u64) -> u32 {
    64u32.saturating_sub((value | 1).leading_zeros())
}

/// Appends the first `count` bytes of `before` (at most eight), and a number.
#[inline]
pub fn put_after_some(out: &mut Vec<u8>, before: [u8; 8], count: usize, value: u64) {
    match short(value) {
        Some((bytes, used)) if count <= 8 => {
            let shift = (count as u32).wrapping_mul(8);
            let mask = u64::MAX.checked_shr(64u32.saturating_sub(shift)).unwrap_or(0);
            let before = u64::from_le_bytes(before) & mask;
            let all = u128::from(bytes) << shift | u128::from(before);
            append_first(out, all.to_le_bytes(), count.saturating_add(used));
        }
        _ => {
            out.extend_from_slice(before.get(..count).unwrap_or(&before));
            put_long(out, value);
        }
    }
}

/// Appends the first `count` bytes: copies a constant size, and truncates the excess.
#[inline]
fn append_first<const N: usize>(out: &mut Vec<u8>, bytes: [u8; N], count: usize) {
    let end = out.len().saturating_add(count);
    out.extend_from_slice(&bytes);
    out.truncate(end);
}

/// The encoding of a number of up to 56 bits, first byte lowest, and its size.
#[inline]
fn short(value: u64) -> Option<(u64, usize)> {
    let used = bits(value).div_ceil(7);
    if used as usize > AT_ONCE {
        return None;
    }
    // Twice 28 bits, four times 14, eight times 7.
    let twos = value & 0x0fff_ffff | (value & 0x00ff_ffff_f000_0000) << 4;
    let fours = twos & 0x0000_3fff_0000_3fff | (twos & 0x0fff_c000_0fff_c000) << 2;
    let eights = fours & 0x007f_007f_007f_007f | (fours & 0x3f80_3f80_3f80_3f80) << 1;
    let marks = MARKS & !u64::MAX.wrapping_shl(used.wrapping_sub(1).wrapping_mul(8));
    Some((eights | marks, used as usize))
}

fn put_long(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Consumes a byte; `None` at the end.
#[inline]
pub fn take_byte(bytes: &mut &[u8]) -> Option<u8> {
    let (&first, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(first)
}

/// Consumes a number; `None` if it has no end.
#[inline]
pub fn take(bytes: &mut &[u8]) -> Option<u64> {
    if let Some((first, rest)) = bytes.split_first()
        && *first < 0x80
    {
        *bytes = rest;
        return Some(u64::from(*first));
    }
    let Some(word) = bytes.first_chunk::<AT_ONCE>().map(|eight| u64::from_le_bytes(*eight)) else {
        return take_each(bytes);
    };
    let ends = !word & MARKS;
    if ends == 0 {
        return take_each(bytes);
    }
    // The bits up to the first byte without a continuation bit.
    let eights = word & (ends ^ ends.wrapping_sub(1)) & !MARKS;
    *bytes = bytes.get((ends.trailing_zeros() / 8).saturating_add(1) as usize..)?;
    let fours = eights & 0x007f_007f_007f_007f | (eights & 0x7f00_7f00_7f00_7f00) >> 1;
    let twos = fours & 0x0000_3fff_0000_3fff | (fours & 0x3fff_0000_3fff_0000) >> 2;
    Some(twos & 0x0fff_ffff | (twos & 0x0fff_ffff_0000_0000) >> 4)
}

/// As [`take`], for the end of the input and for long numbers.
fn take_each(bytes: &mut &[u8]) -> Option<u64> {
    let (mut value, mut shift) = (0u64, 0u32);
    loop {
        let byte = take_byte(bytes)?;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte < 0x80 {
            return Some(value);
        }
        shift = shift.saturating_add(7);
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing)]
mod tests {
    use super::*;

    fn values() -> impl Iterator<Item = u64> {
        (0..64).flat_map(|bit| [1 << bit, !(u64::MAX << bit), 0x5555_5555_5555_5555 >> bit])
    }

    #[test]
    fn numbers_come_back_in_the_bytes_of_the_format() {
        for value in values() {
            let (mut bytes, mut expected, mut after) = (Vec::new(), Vec::new(), Vec::new());
            put(&mut bytes, value);
            put_long(&mut expected, value);
            put_after(&mut after, 7, value);
            assert_eq!(bytes, expected);
            assert_eq!(after, [&[7], &*expected].concat());
            assert_eq!(length(value), expected.len());
            for count in 0..=8 {
                let mut after = vec![9];
                put_after_some(&mut after, [1, 2, 3, 4, 0xff, 6, 7, 8], count, value);
                assert_eq!(
                    after,
                    [&[9], &[1, 2, 3, 4, 0xff, 6, 7, 8][..count], &expected].concat()
                );
            }
            for more in 0..12 {
                let all = [expected.clone(), vec![0xff; more]].concat();
                let mut rest = all.as_slice();
                assert_eq!(take(&mut rest), Some(value));
                assert_eq!(rest.len(), more);
            }
            for cut in 0..expected.len() {
                assert_eq!(take(&mut &expected[..cut]), None);
            }
        }
    }

    #[test]
    fn numbers_of_too_many_bytes_are_none() {
        assert_eq!(take(&mut [0xff; 30].as_slice()), None);
        assert_eq!(take(&mut [&[0x80; 10], [1].as_slice()].concat().as_slice()), None);
        // Redundant bytes are valid.
        assert_eq!(take(&mut [0x85, 0x80, 0x80, 0, 9, 9, 9, 9, 9].as_slice()), Some(5));
    }
}
