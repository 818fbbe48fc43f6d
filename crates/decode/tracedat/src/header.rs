//! The first bytes of the file: version, number format, compression.

use crate::TraceDatError;
use crate::compression::Compression;
use raw_bytes::{ByteOrder, Cursor, Damages, LongSize, Truncated, bytes};

/// Magic number of a trace.dat.
pub(crate) const MAGIC: [u8; 10] = *b"\x17\x08\x44tracing";

/// Version of the container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// Consecutive parts; trace-cmd before 3.0.
    V6,
    /// Sections that options refer to, and compression.
    V7,
}

impl Version {
    /// The number written to the file.
    #[must_use]
    pub fn number(self) -> u32 {
        match self {
            Self::V6 => 6,
            Self::V7 => 7,
        }
    }
}

/// The fixed part at the start of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Version of the container.
    pub version: Version,
    /// Byte order of all numbers: that of the recorded machine.
    pub order: ByteOrder,
    /// Size of a `long` in the recording program, which can be a 32-bit program on a 64-bit kernel:
    /// the kernel's is [`Formats::kernel_long`](crate::Formats::kernel_long).
    pub user_long: LongSize,
    /// Page size of the recorded machine in bytes: a power of two.
    pub page_size: u32,
    /// Compression of compressed sections; each section states whether it is compressed.
    pub compression: Compression,
    /// Version text of the compressor, empty in version 6.
    pub compression_version: String,
}

/// Page size if the file's is implausible.
const DEFAULT_PAGE_SIZE: u32 = 4096;

impl Header {
    /// Reads the start of the file; the returned cursor is at the data after it.
    pub(crate) fn parse<'a>(
        file: &'a [u8],
        damages: &mut Damages,
    ) -> Result<(Self, Cursor<'a>), TraceDatError> {
        let rest = file.strip_prefix(&MAGIC).ok_or_else(|| not_begun(file))?;
        let mut cursor = Cursor::new(rest, ByteOrder::Little, MAGIC.len() as u64);
        let short = TraceDatError::short("header");
        let version = version(&mut cursor)?;
        let offset = cursor.offset();
        let order = match cursor.u8().map_err(&short)? {
            0 => ByteOrder::Little,
            1 => ByteOrder::Big,
            mark => return Err(TraceDatError::ByteOrder { offset, mark }),
        };
        let mut cursor = Cursor::new(cursor.rest(), order, cursor.offset());
        let user_long = user_long(cursor.u8().map_err(&short)?, cursor.offset(), damages);
        let at = cursor.offset();
        let page_size = cursor.u32().map_err(&short)?;
        let page_size = sane_page_size(page_size, DEFAULT_PAGE_SIZE, at, damages);
        let (compression, compression_version) = match version {
            Version::V6 => (Compression::None, String::new()),
            Version::V7 => {
                let name = cursor.c_str().map_err(&short)?;
                let version = String::from_utf8_lossy(cursor.c_str().map_err(&short)?);
                (Compression::from_name(name), version.into_owned())
            }
        };
        let header =
            Self { version, order, user_long, page_size, compression, compression_version };
        Ok((header, cursor))
    }
}

/// A file shorter than the magic number may be a truncated trace.dat.
fn not_begun(file: &[u8]) -> TraceDatError {
    let have = file.len() as u64;
    let source = Truncated { offset: 0, wanted: MAGIC.len() as u64, have };
    if have > 0 && MAGIC.starts_with(file) {
        TraceDatError::Short { what: "header", source }
    } else {
        TraceDatError::NotTraceDat
    }
}

fn version(cursor: &mut Cursor<'_>) -> Result<Version, TraceDatError> {
    let offset = cursor.offset();
    match cursor.c_str().map_err(TraceDatError::short("header"))? {
        b"6" => Ok(Version::V6),
        b"7" => Ok(Version::V7),
        other => {
            let start = other.get(..16).unwrap_or(other);
            let version = String::from_utf8_lossy(start).into_owned();
            Err(TraceDatError::Version { offset, version })
        }
    }
}

fn user_long(size: u8, after: u64, damages: &mut Damages) -> LongSize {
    LongSize::from_bytes(size.into()).unwrap_or_else(|| {
        damages.note(after.saturating_sub(1), format!("a long of {}; 8 are assumed", bytes(size)));
        LongSize::Eight
    })
}

/// Sub-buffer sizes are powers of two; the kernel's `buffer_subbuf_size_kb` ends below 16 MiB.
const PAGE_SIZES: std::ops::RangeInclusive<u32> = 64..=(16 << 20);

pub(crate) fn sane_page_size(found: u32, instead: u32, at: u64, damages: &mut Damages) -> u32 {
    if found.is_power_of_two() && PAGE_SIZES.contains(&found) {
        return found;
    }
    damages.note(at, format!("{found} is not a page size; {instead} is assumed"));
    instead
}
