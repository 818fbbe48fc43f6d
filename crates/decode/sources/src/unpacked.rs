//! Recordings and texts that a program for compression packed as a whole: they are unpacked once, into a
//! temporary file as what comes from a pipe is.

use std::io::Read;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use sys::FileMap;

use crate::open::OpenError;

/// What a frame of zstd may ask for, as a power of two: the window of `zstd --ultra -22`, 128 MiB, which
/// unpacking holds in memory.
const MOST_ZSTD_WINDOW_LOG: u32 = 27;

/// How a file begins that is compressed with what can't be read here, and the program for it.
const OTHERS: [(&[u8], &str); 2] = [(b"\xfd7zXZ\0", "xz"), (b"BZh", "bzip2")];

/// What is in a compressed file; the file itself if it isn't compressed.
///
/// # Errors
/// When it is damaged, unpacks to more than may be spooled, or is compressed with something else. What is
/// compressed twice is not unpacked twice.
pub(crate) fn unpacked(path: &Path, file: FileMap) -> Result<FileMap, OpenError> {
    let refused = |program| OpenError::Compressed { path: path.to_owned(), program };
    if let Some((_, program)) = OTHERS.iter().find(|(magic, _)| file.starts_with(magic)) {
        return Err(refused(program));
    }
    let unpacked = match kind(&file) {
        None => return Ok(file),
        Some(Kind::Gzip) => FileMap::spooled(MultiGzDecoder::new(&file[..]), path)?,
        Some(Kind::Zstd) => FileMap::spooled(zstd(&file, path)?, path)?,
    };
    match kind(&unpacked) {
        None => Ok(unpacked),
        Some(kind) => Err(refused(kind.program())),
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
        decoder.window_log_max(MOST_ZSTD_WINDOW_LOG)?;
        Ok(decoder)
    });
    made.map_err(|source| sys::OpenError::Io { path: path.to_owned(), source }.into())
}
