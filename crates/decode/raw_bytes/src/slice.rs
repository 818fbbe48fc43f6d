//! Bounds-checked slices of a file, for untrusted offsets.

/// The bytes from `offset` on; empty past the end.
#[must_use]
pub fn from(file: &[u8], offset: u64) -> &[u8] {
    usize::try_from(offset).ok().and_then(|at| file.get(at..)).unwrap_or_default()
}

/// The bytes of a range; bytes past the end are missing.
#[must_use]
pub fn range(file: &[u8], offset: u64, len: u64) -> &[u8] {
    let rest = from(file, offset);
    let len = usize::try_from(len).unwrap_or(usize::MAX).min(rest.len());
    rest.get(..len).unwrap_or_default()
}

/// The bytes before the first NUL, or all bytes.
#[must_use]
pub fn until_nul(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    bytes.get(..end).unwrap_or_default()
}

/// The text before the first NUL, or all text; invalid UTF-8 is replaced.
#[must_use]
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(until_nul(bytes)).into_owned()
}
