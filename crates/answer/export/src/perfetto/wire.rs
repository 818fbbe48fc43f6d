//! Fields of protobuf messages as bytes, one after the other.

/// Bytes of the longest number, seven bits each.
const LONGEST: usize = 10;

/// A number after its key.
#[inline]
pub(super) fn number(out: &mut Vec<u8>, key: u8, value: u64) {
    if value < 0x80 {
        out.extend_from_slice(&[key, value as u8]);
        return;
    }
    out.push(key);
    varint(out, value);
}

/// A number: seven bits a byte, the lowest first, and a mark on all but the last.
pub(super) fn varint(out: &mut Vec<u8>, value: u64) {
    let (bytes, used) = varint_bytes(value);
    out.extend_from_slice(bytes.get(..used).unwrap_or_default());
}

#[inline]
fn varint_bytes(mut value: u64) -> ([u8; LONGEST], usize) {
    let (mut bytes, mut used) = ([0; LONGEST], 0);
    for byte in &mut bytes {
        used += 1;
        *byte = value as u8 & 0x7f;
        value >>= 7;
        if value == 0 {
            break;
        }
        *byte |= 0x80;
    }
    (bytes, used)
}

/// Bytes, or a message that is bytes already.
#[inline]
pub(super) fn bytes(out: &mut Vec<u8>, key: u8, bytes: &[u8]) {
    number(out, key, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// A message of which it is known how long it is once it is written. Mostly one byte says so; others make room for more.
#[inline]
pub(super) fn nested(out: &mut Vec<u8>, key: u8, write: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(&[key, 0]);
    let begin = out.len();
    write(out);
    let length = out.len() - begin;
    match (length, out.get_mut(begin - 1)) {
        (0..=0x7f, Some(place)) => *place = length as u8,
        _ => {
            let (bytes, used) = varint_bytes(length as u64);
            out.splice(begin - 1..begin, bytes.into_iter().take(used));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_prost_has_them() {
        let values = (0..64).flat_map(|bit| [1 << bit, (1 << bit) - 1]).chain([u64::MAX]);
        for value in values {
            let (mut own, mut expected) = (Vec::new(), vec![8]);
            number(&mut own, 8, value);
            prost::encoding::encode_varint(value, &mut expected);
            assert_eq!(own, expected);
        }
    }

    #[test]
    fn long_messages_say_how_long_they_are() {
        for length in [0, 1, 0x7f, 0x80, 0x3fff, 0x4000] {
            let (mut own, mut expected) = (vec![1, 2], vec![1, 2]);
            nested(&mut own, 10, |out| out.extend(vec![7; length]));
            bytes(&mut expected, 10, &vec![7; length]);
            assert_eq!(own, expected);
        }
    }
}
