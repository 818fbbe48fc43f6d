//! A perf.data: any bytes behind a sound magic, as a file or as what goes through a pipe.

use crate::recording;

/// Reads `bytes` as a perf.data; the first says in which form and byte order.
pub fn run(bytes: &[u8]) {
    let Some((&form, rest)) = bytes.split_first() else { return };
    let (magic, size): (&[u8; 8], u64) = match form & 1 {
        0 => (b"PERFILE2", 104),
        _ => (b"2ELIFREP", 104),
    };
    let size = if form & 2 == 0 { size } else { 16 };
    let size = if form & 1 == 0 { size.to_le_bytes() } else { size.to_be_bytes() };
    let file = [&magic[..], &size[..], rest].concat();
    recording::run(&file);
}
