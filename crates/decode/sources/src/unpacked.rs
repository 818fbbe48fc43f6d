//! Compressed recordings and texts: they are unpacked once, into the spool (a temporary file) that
//! also stores piped input.

use std::io::{self, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use sys::FileMap;

use crate::open_error::{OpenError, OpenFault};

/// Maximum window of a zstd frame, as a power of two: that of `zstd --ultra -22`, 128 MiB, which
/// decompression holds in memory.
const MAX_ZSTD_WINDOW_LOG: u32 = 27;

/// Magic numbers of unsupported compression formats, with their programs.
const OTHERS: [(&[u8], &str); 2] = [(b"\xfd7zXZ\0", "xz"), (b"BZh", "bzip2")];

/// The content of a compressed file; the file itself if it is not compressed.
#[derive(Debug)]
pub(crate) struct Unpacked {
    pub(crate) file: FileMap,
    /// The compression program if the rest cannot be unpacked: the file is truncated or damaged.
    pub(crate) fault: Option<&'static str>,
}

impl Unpacked {
    fn without_fault(file: FileMap) -> Self {
        Self { file, fault: None }
    }
}

/// Unpacks a compressed file, up to the first damage.
///
/// # Errors
/// If nothing can be unpacked, if the content exceeds the spool's limit, or if the compression
/// format is unsupported. A file that is compressed twice is not unpacked twice.
pub(crate) fn unpacked(path: &Path, file: FileMap) -> Result<Unpacked, OpenError> {
    let refused = |program| OpenError::new(path, OpenFault::Compressed { program });
    if let Some((_, program)) = OTHERS.iter().find(|(magic, _)| file.starts_with(magic)) {
        return Err(refused(program));
    }
    let Some(packed) = kind(&file) else { return Ok(Unpacked::without_fault(file)) };
    let program = packed.program();
    let (unpacked, is_whole) = match packed {
        Kind::Gzip => spooled(MultiGzDecoder::new(&file[..]), path)?,
        Kind::Zstd => spooled(zstd(&file, path)?, path)?,
    };
    if let (true, false) = (unpacked.is_empty(), is_whole) {
        return Err(OpenError::new(path, OpenFault::Packed { program, unpacked_bytes: 0 }));
    }
    match kind(&unpacked) {
        None => Ok(Unpacked { file: unpacked, fault: (!is_whole).then_some(program) }),
        Some(kind) => Err(refused(kind.program())),
    }
}

/// The output of a decompressor before its first error, and whether it completed.
fn spooled(from: impl Read, path: &Path) -> Result<(FileMap, bool), OpenError> {
    let mut until_fault = UntilFault { from, is_whole: true };
    let file = FileMap::spooled(&mut until_fault, path)?;
    Ok((file, until_fault.is_whole))
}

/// A reader that ends at the first error of its source.
struct UntilFault<R> {
    from: R,
    is_whole: bool,
}

impl<R: Read> Read for UntilFault<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(buffer);
        // A decompressor of bytes in memory can only fail because of these bytes.
        self.is_whole &= read.is_ok();
        Ok(read.unwrap_or(0))
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Gzip,
    Zstd,
}

impl Kind {
    const fn program(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }
}

fn kind(file: &[u8]) -> Option<Kind> {
    match file {
        [0x1f, 0x8b, ..] => Some(Kind::Gzip),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Kind::Zstd),
        _ => None,
    }
}

fn zstd<'f>(file: &'f [u8], path: &Path) -> Result<impl Read + use<'f>, OpenError> {
    let made = zstd::stream::read::Decoder::with_buffer(file).and_then(|mut decoder| {
        decoder.window_log_max(MAX_ZSTD_WINDOW_LOG)?;
        Ok(decoder)
    });
    Ok(made.map_err(sys::OpenError::io(path))?)
}
