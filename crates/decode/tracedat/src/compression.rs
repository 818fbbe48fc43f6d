//! Compression of sections and chunks; every size is bounded before memory is allocated.

use raw_bytes::bytes;

use crate::Damage;
use crate::output_room::{first_room, give_room};
use crate::zstandard::Zstandard;
use flate2::{Decompress, FlushDecompress, Status};

/// How sections and trace data of a file are compressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Uncompressed; always the case in version 6.
    None,
    /// Deflate with a zlib header.
    Zlib,
    /// Zstandard frames; trace-cmd writes them without a content size.
    Zstd,
    /// An unsupported compression format: compressed parts cannot be read.
    Other(String),
}

/// Maximum stored bytes of an unknown compressor's name.
const MAX_NAME: usize = 32;

impl Compression {
    pub(crate) fn from_name(name: &[u8]) -> Self {
        match name {
            b"none" | b"" => Self::None,
            b"zlib" => Self::Zlib,
            b"zstd" => Self::Zstd,
            other => {
                // The name is cloned with every chunk, and a hostile one could be very long.
                let start = other.get(..MAX_NAME).unwrap_or(other);
                Self::Other(String::from_utf8_lossy(start).into_owned())
            }
        }
    }

    /// The name written to the file.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::None => "none",
            Self::Zlib => "zlib",
            Self::Zstd => "zstd",
            Self::Other(name) => name,
        }
    }
}

/// Decompresses pieces, and keeps the decompressor's memory between them.
pub(crate) struct Inflate {
    zstd: Zstandard,
}

impl Inflate {
    pub(crate) fn new() -> Self {
        Self { zstd: Zstandard::new() }
    }

    /// Replaces `out` by the decompressed `input`, which must have exactly `declared` bytes.
    ///
    /// `declared` comes from the file and can be wrong, so memory grows with the actual output: it
    /// starts with a guess of the ratio, and doubles as needed. Earlier content of `out` does not
    /// affect the result.
    pub(crate) fn run(
        &mut self,
        how: &Compression,
        input: &[u8],
        declared: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        let result = match how {
            Compression::None => {
                Err("it is marked as compressed in a file without compression".into())
            }
            Compression::Other(name) => {
                Err(format!("it is compressed with {name}, which is not supported"))
            }
            Compression::Zlib => zlib(input, declared, out),
            Compression::Zstd => self.zstd.unpack(input, declared, out),
        };
        out.truncate(*result.as_ref().unwrap_or(&0));
        match result? {
            size if size == declared => Ok(()),
            size => Err(format!("unpacked {} instead of the declared {declared}", bytes(size))),
        }
    }
}

/// Decompresses to the beginning of `out`, at most `declared` bytes; returns the number of bytes.
fn zlib(input: &[u8], declared: usize, out: &mut Vec<u8>) -> Result<usize, String> {
    let mut inflate = Decompress::new(true);
    let mut room = first_room(input.len(), declared);
    loop {
        give_room(out, room);
        let place = |total: u64| usize::try_from(total).unwrap_or(usize::MAX);
        let (input_used, given) = (place(inflate.total_in()), place(inflate.total_out()));
        let rest = input.get(input_used..).unwrap_or_default();
        let space = out.get_mut(given..).unwrap_or_default();
        // `Finish` needs the full output in one call: a second call with more space fails.
        let status = inflate.decompress(rest, space, FlushDecompress::None);
        let status = status.map_err(|error| format!("zlib: {error}"))?;
        let now_given = place(inflate.total_out());
        if status == Status::StreamEnd {
            return Ok(now_given);
        }
        if now_given < room {
            return Err("zlib: the compressed data ends early".into());
        }
        if room == declared {
            // The checksum follows the last byte: without it the data is not verified.
            return Err(format!("zlib: the data is longer than the declared {}", bytes(declared)));
        }
        room = room.saturating_mul(2).min(declared);
    }
}

/// Reads one compressed section: the two sizes, then the bytes.
pub(crate) fn inflate_section(
    how: &Compression,
    input: &[u8],
    declared: u32,
    at: u64,
) -> Result<Vec<u8>, Damage> {
    if declared > MAX_IN_SECTION {
        return Err(Damage::new(at, format!("a section of {} is implausible", bytes(declared))));
    }
    let mut out = Vec::new();
    let declared = usize::try_from(declared).unwrap_or(usize::MAX);
    Inflate::new().run(how, input, declared, &mut out).map_err(|what| Damage::new(at, what))?;
    Ok(out)
}

/// Maximum plausible section; kallsyms of large kernels with all modules have less than 32 MiB.
const MAX_IN_SECTION: u32 = 256 << 20;
