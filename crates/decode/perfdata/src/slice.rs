//! Cutting the file's bytes by offsets that may point anywhere.

use raw_bytes::{Cursor, Truncated};

/// The bytes of a range, less what lies past the end.
pub(crate) fn range(file: &[u8], offset: u64, len: u64) -> &[u8] {
    let rest = usize::try_from(offset).ok().and_then(|at| file.get(at..)).unwrap_or_default();
    let len = usize::try_from(len).unwrap_or(usize::MAX).min(rest.len());
    rest.get(..len).unwrap_or_default()
}

/// Bytes up to their first NUL, if there is one.
pub(crate) fn until_nul(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    bytes.get(..end).unwrap_or_default()
}

/// Text up to its first NUL, with bytes that are not UTF-8 replaced.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(until_nul(bytes)).into_owned()
}

/// A text of a feature: its size in four bytes, then itself with NULs to fill up.
pub(crate) fn sized_text(cursor: &mut Cursor<'_>) -> Result<String, Truncated> {
    let len = cursor.u32()?;
    cursor.take(len.into()).map(text)
}
