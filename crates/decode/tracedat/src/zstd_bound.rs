//! The maximum decompressed size of a Zstandard frame, from the headers of its blocks (RFC 8878,
//! section 3).
//!
//! A frame and its file can declare its size, but both can be wrong. The format bounds the size of
//! each block.

use raw_bytes::{ByteOrder, Cursor, Truncated};

const FRAME: u32 = 0xfd2f_b528;
/// Magic number of skippable frames, which have any of sixteen numbers.
const SKIPPABLE: u32 = 0x184d_2a50;
/// Maximum decompressed size of a block.
const MAX_IN_BLOCK: u64 = 128 << 10;

/// The maximum decompressed size of `input`; ignores truncated blocks.
pub(crate) fn most_unpacked(input: &[u8]) -> u64 {
    let mut cursor = Cursor::new(input, ByteOrder::Little, 0);
    let mut max = 0;
    while let Ok(()) = frame(&mut cursor, &mut max) {}
    max
}

/// Parses a frame, and adds its maximum size to `max`, also if it is truncated.
fn frame(cursor: &mut Cursor<'_>, max: &mut u64) -> Result<(), Truncated> {
    match cursor.u32()? {
        FRAME => {}
        magic if magic & !0xf == SKIPPABLE => {
            let len = cursor.u32()?;
            return cursor.take(len.into()).map(|_| ());
        }
        _ => return cursor.take(u64::MAX).map(|_| ()),
    }
    let descriptor = cursor.u8()?;
    let single_segment = descriptor & 0x20 != 0;
    let window = u64::from(!single_segment);
    let dictionary = match descriptor & 3 {
        3 => 4,
        other => u64::from(other),
    };
    let content_size = match (descriptor >> 6, single_segment) {
        (0, single) => u64::from(single),
        (1, _) => 2,
        (2, _) => 4,
        _ => 8,
    };
    cursor.take(window.saturating_add(dictionary).saturating_add(content_size))?;
    while block(cursor, max)? {}
    let checksum = if descriptor & 4 != 0 { 4 } else { 0 };
    cursor.take(checksum).map(|_| ())
}

/// Parses a block; false after the last.
fn block(cursor: &mut Cursor<'_>, max: &mut u64) -> Result<bool, Truncated> {
    let (low, high) = (u32::from(cursor.u16()?), u32::from(cursor.u8()?));
    let head = high << 16 | low;
    let size = u64::from(head >> 3);
    let (stored, unpacked) = match head >> 1 & 3 {
        0 => (size, size),
        1 => (1, size),
        _ => (size, MAX_IN_BLOCK),
    };
    cursor.take(stored)?;
    *max = max.saturating_add(unpacked.min(MAX_IN_BLOCK));
    Ok(head & 1 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sound_frames_unpack_to_no_more() {
        let inputs = [
            Vec::new(),
            vec![7; 100],
            vec![7; 1 << 20],
            (0..300_000_u32).flat_map(|at| at.wrapping_mul(at).to_le_bytes()).collect::<Vec<u8>>(),
        ];
        for input in inputs {
            for level in [1, 3, 19] {
                let packed = zstd::bulk::compress(&input, level).unwrap();
                let streamed = zstd::stream::encode_all(&input[..], level).unwrap();
                for packed in [&packed, &streamed, &[&packed[..], &streamed[..]].concat()] {
                    let max = most_unpacked(packed);
                    assert!(max >= input.len() as u64, "{max} of {}", input.len());
                }
                // A block takes at least three bytes, however well it compresses.
                let most_blocks = packed.len() as u64 / 3;
                assert!(most_unpacked(&packed) <= most_blocks * MAX_IN_BLOCK);
            }
        }
    }

    #[test]
    fn what_a_frame_declares_is_not_believed() {
        // A segment that declares 2^32 - 1 bytes, with an RLE block of 9 bytes.
        let lie = [0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0xff, 0xff, 0xff, 0xff, 0x4b, 0, 0, 7];
        assert_eq!(most_unpacked(&lie), 9);
        assert_eq!(most_unpacked(&lie[..11]), 0);
        assert_eq!(most_unpacked(b"no frame at all"), 0);
        assert_eq!(
            most_unpacked(&[&[0x5f, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 9], &lie[..]].concat()),
            9
        );
    }
}
