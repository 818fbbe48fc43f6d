//! Fields of protobuf messages as bytes, one after the other.

use raw_bytes::seven_bits;

pub(super) use raw_bytes::seven_bits::put as varint;

/// Adds a key and a number.
#[inline]
pub(super) fn number(out: &mut Vec<u8>, key: u8, value: u64) {
    seven_bits::put_after(out, key, value);
}

/// Adds a key and bytes, or an encoded message.
#[inline]
pub(super) fn bytes(out: &mut Vec<u8>, key: u8, bytes: &[u8]) {
    number(out, key, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Adds a message whose length is known only after it is written. Mostly one byte holds the length; for longer messages
/// the bytes are moved.
#[inline]
pub(super) fn nested(out: &mut Vec<u8>, key: u8, write: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(&[key, 0]);
    let begin = out.len();
    write(out);
    let length = out.len() - begin;
    match (length, out.get_mut(begin - 1)) {
        (0..=0x7f, Some(place)) => *place = length as u8,
        _ => make_room(out, begin),
    }
}

/// Writes the length of the message that begins at `begin`, after the single byte reserved for it.
fn make_room(out: &mut Vec<u8>, begin: usize) {
    let end = out.len();
    varint(out, (end - begin) as u64);
    let mut length = [0; seven_bits::NUMBER_BYTES];
    let used = out.len() - end;
    if let (Some(place), Some(written)) = (length.get_mut(..used), out.get(end..)) {
        place.copy_from_slice(written);
    }
    out.copy_within(begin..end, begin - 1 + used);
    if let (Some(place), Some(length)) = (out.get_mut(begin - 1..), length.get(..used)) {
        place.iter_mut().zip(length).for_each(|(place, byte)| *place = *byte);
    }
    out.truncate(end - 1 + used);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_prost_has_them() {
        let values = (0..64).flat_map(|bit| [1 << bit, (1 << bit) - 1]).chain([u64::MAX]);
        for value in values {
            let (mut actual, mut expected) = (Vec::new(), vec![8]);
            number(&mut actual, 8, value);
            prost::encoding::encode_varint(value, &mut expected);
            assert_eq!(actual, expected);
            actual.truncate(1);
            varint(&mut actual, value);
            assert_eq!(actual, expected);
        }
    }

    #[test]
    fn long_messages_say_how_long_they_are() {
        for length in [0, 1, 0x7f, 0x80, 0x3fff, 0x4000] {
            let (mut actual, mut expected) = (vec![1, 2], vec![1, 2]);
            nested(&mut actual, 10, |out| out.extend(vec![7; length]));
            bytes(&mut expected, 10, &vec![7; length]);
            assert_eq!(actual, expected);
        }
    }
}
