//! Copies pages from a reader to the file, ten at a time.

use super::{Entry, Output, invalid};
use crate::{Compression, zstandard};
use flate2::write::ZlibEncoder;
use std::io::{self, Read, Seek, Write};

/// Pages per compressed chunk, as in trace-cmd.
const PAGES_IN_CHUNK: u64 = 10;

/// Writes a CPU's pages, compressed or not; returns their position and the number of bytes read.
pub(super) fn copy<W: Write + Seek>(
    out: &mut Output<W>,
    cpu: u32,
    page_size: u32,
    how: &Compression,
    pages: impl Read,
) -> io::Result<(Entry, u64)> {
    match how {
        Compression::None => stored(out, cpu, page_size, pages),
        _ => compressed(out, cpu, page_size, how, pages),
    }
}

pub(super) fn stored<W: Write + Seek>(
    out: &mut Output<W>,
    cpu: u32,
    page_size: u32,
    mut pages: impl Read,
) -> io::Result<(Entry, u64)> {
    let offset = out.align(page_size)?;
    let len = io::copy(&mut pages, &mut out.out)?;
    whole_pages(len, page_size)?;
    Ok((Entry { cpu, offset, len }, len))
}

fn compressed<W: Write + Seek>(
    out: &mut Output<W>,
    cpu: u32,
    page_size: u32,
    how: &Compression,
    mut pages: impl Read,
) -> io::Result<(Entry, u64)> {
    let offset = out.align(page_size)?;
    let chunk_size = u64::from(page_size).saturating_mul(PAGES_IN_CHUNK);
    let (mut count, mut read) = (0_u32, 0_u64);
    let mut chunk = Vec::new();
    out.write(&[0; 4])?;
    loop {
        chunk.clear();
        let got = pages.by_ref().take(chunk_size).read_to_end(&mut chunk)?;
        if got == 0 {
            break;
        }
        write_block(out, how, &chunk)?;
        count = count.checked_add(1).ok_or_else(|| invalid("too many chunks"))?;
        read = read.saturating_add(got as u64);
    }
    whole_pages(read, page_size)?;
    let end = out.position()?;
    let bytes = out.encoder.u32(count);
    out.patch(offset, &bytes)?;
    let len = if read == 0 { 0 } else { end.saturating_sub(offset) };
    Ok((Entry { cpu, offset, len }, read))
}

fn whole_pages(len: u64, page_size: u32) -> io::Result<()> {
    if len.is_multiple_of(page_size.max(1).into()) {
        return Ok(());
    }
    Err(invalid(format!("{len} bytes are not whole pages of {page_size}")))
}

/// Writes the two sizes of a compressed block, and the block.
pub(super) fn write_block<W: Write + Seek>(
    out: &mut Output<W>,
    how: &Compression,
    data: &[u8],
) -> io::Result<()> {
    let packed = match how {
        Compression::Zstd => zstandard::pack(data)?,
        Compression::Zlib => {
            let mut encoder = ZlibEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(data)?;
            encoder.finish()?
        }
        other => return Err(invalid(format!("compression {} is not supported", other.name()))),
    };
    let sizes = [out.encoder.len32(packed.len())?, out.encoder.len32(data.len())?];
    out.write(sizes.as_flattened())?;
    out.write(&packed)
}
