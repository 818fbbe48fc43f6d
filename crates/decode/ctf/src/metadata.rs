//! Containers of metadata: text, text in packets of either byte order, or JSON.

use raw_bytes::ByteOrder;

use crate::{CtfError, Layout, json, tsdl};

/// The magic number of metadata packets.
const METADATA_MAGIC: u32 = 0x75d1_1d57;
/// The magic number of data packets.
const STREAM_MAGIC: u32 = 0xc1fc_1fc1;
/// Bytes of a metadata packet header.
const HEAD_BYTES: usize = 37;
/// The separator of CTF 2 fragments.
const RECORD_SEPARATOR: u8 = 0x1e;

/// Whether a file starts like metadata.
#[must_use]
pub fn is_metadata(file: &[u8]) -> bool {
    let text = file.strip_prefix(b"\xef\xbb\xbf").unwrap_or(file).trim_ascii_start();
    order_of(file, METADATA_MAGIC).is_some()
        || text.first() == Some(&RECORD_SEPARATOR)
        || text.starts_with(b"/* CTF")
}

/// Whether a file starts like a data stream.
#[must_use]
pub fn is_stream(file: &[u8]) -> bool {
    order_of(file, STREAM_MAGIC).is_some()
}

pub(crate) fn parse(file: &[u8]) -> Result<Layout, CtfError> {
    let layout = match order_of(file, METADATA_MAGIC) {
        Some(order) => {
            let text = unpacked(file, order)?;
            if is_json(&text) { json::parse(&text)? } else { tsdl::parse(&text)? }
        }
        None if is_json(file) => json::parse(file)?,
        None if is_text(file) => tsdl::parse(file)?,
        None => return Err(CtfError::NotMetadata),
    };
    layout.finish()
}

fn is_json(text: &[u8]) -> bool {
    text.first() == Some(&RECORD_SEPARATOR)
}

/// Some tracers omit the comment that the specification requires first.
fn is_text(file: &[u8]) -> bool {
    let first = file.get(..4096).unwrap_or(file);
    let is_text = first.iter().all(|&byte| byte >= b' ' || byte.is_ascii_whitespace());
    is_text && (is_metadata(file) || first.windows(7).any(|word| word == b"trace {"))
}

fn order_of(file: &[u8], magic: u32) -> Option<ByteOrder> {
    let first = *file.first_chunk()?;
    [ByteOrder::Little, ByteOrder::Big].into_iter().find(|order| order.u32(first) == magic)
}

/// Extracts the text from packets.
fn unpacked(file: &[u8], order: ByteOrder) -> Result<Vec<u8>, CtfError> {
    let (mut text, mut offset, mut packet) = (Vec::new(), 0, 0);
    while let Some(rest) = file.get(offset..).filter(|rest| !rest.is_empty()) {
        packet += 1;
        let bad = |what| CtfError::Packet { packet, offset, what };
        let head = rest.get(..HEAD_BYTES).ok_or_else(|| bad("it ends within its header"))?;
        if order.u32_at(head, 0) != Some(METADATA_MAGIC) {
            return Err(bad("it does not begin with the magic number of a metadata packet"));
        }
        let bits = |at| order.u32_at(head, at).unwrap_or(0);
        let (content, size) = (bits(24), bits(28));
        if head.get(32..35) != Some(&[0, 0, 0]) {
            return Err(bad(
                "it is compressed, encrypted or has a checksum; none of these is supported",
            ));
        }
        let (content, size) = (content as usize / 8, size as usize / 8);
        if content < HEAD_BYTES || size < content {
            return Err(bad("its sizes are impossible"));
        }
        let has = rest.get(HEAD_BYTES..content).ok_or_else(|| bad("the file ends within it"))?;
        text.extend_from_slice(has);
        offset = offset.saturating_add(size);
    }
    Ok(text)
}
