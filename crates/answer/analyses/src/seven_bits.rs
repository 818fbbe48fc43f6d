//! Numbers in few bytes: seven bits a byte, the lowest first, the eighth says that more follow (LEB128).

/// Bytes of a number at most.
pub(crate) const NUMBER_BYTES: usize = 10;

/// Appends a number.
pub(crate) fn put(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Takes a byte off the front.
#[inline]
pub(crate) fn take_byte(bytes: &mut &[u8]) -> Option<u8> {
    let (&first, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(first)
}

/// Takes a number off the front.
#[inline]
pub(crate) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = take_byte(bytes)?;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte < 0x80 {
            return Some(value);
        }
        shift += 7;
    }
}
