//! The header of a perf.data: its form, its byte order, and the positions of its sections.

use raw_bytes::{ByteOrder, Cursor, Truncated, slice};

use crate::PerfDataError;

/// Header sizes of the file form and the pipe form.
const FILE_BYTES: u64 = 104;
const PIPE_BYTES: u64 = 16;

/// How a recording was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// To a file: events and features are in sections; the header has their positions.
    File,
    /// To a pipe: events and features are records.
    Pipe,
}

/// A section of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// Offset in bytes.
    pub offset: u64,
    /// Its size in bytes.
    pub size: u64,
}

impl Range {
    /// Its content; bytes past the end of the file are missing.
    #[must_use]
    pub fn bytes_in<'f>(&self, file: &'f [u8]) -> &'f [u8] {
        slice::range(file, self.offset, self.size)
    }

    /// Offset of its end in bytes.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.size)
    }

    pub(crate) fn read(cursor: &mut Cursor<'_>) -> Result<Self, Truncated> {
        Ok(Self { offset: cursor.u64()?, size: cursor.u64()? })
    }
}

/// The content of a file's header.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    pub(crate) order: ByteOrder,
    /// The sections; `None` for a pipe.
    pub(crate) sections: Option<Sections>,
    /// Size of the header in bytes.
    pub(crate) size: u64,
}

/// Positions of the sections of a file.
#[derive(Clone, Debug)]
pub(crate) struct Sections {
    /// Size of an entry in `attrs`.
    pub(crate) attr_size: u64,
    pub(crate) attrs: Range,
    pub(crate) data: Range,
    /// A bit for each feature in the file, lowest first.
    pub(crate) features: [u64; 4],
}

impl Header {
    pub(crate) fn parse(file: &[u8]) -> Result<Self, PerfDataError> {
        let order = match file.first_chunk() {
            Some(b"PERFILE2") => ByteOrder::Little,
            Some(b"2ELIFREP") => ByteOrder::Big,
            Some(b"PERFFILE" | b"ELIFFREP") => return Err(PerfDataError::Old),
            _ => return Err(PerfDataError::NotPerfData),
        };
        let mut cursor = Cursor::new(slice::range(file, 8, u64::MAX), order, 8);
        let short = |source| PerfDataError::Short { source };
        let size = cursor.u64().map_err(short)?;
        let sections = match size {
            PIPE_BYTES => None,
            FILE_BYTES => Some(Sections::read(&mut cursor).map_err(short)?),
            size => return Err(PerfDataError::HeaderSize { size }),
        };
        Ok(Self { order, sections, size })
    }
}

impl Sections {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self, Truncated> {
        let attr_size = cursor.u64()?;
        let attrs = Range::read(cursor)?;
        let data = Range::read(cursor)?;
        Range::read(cursor)?; // Names of events, as perf wrote them before 2011.
        let mut features = [0; 4];
        for word in &mut features {
            *word = cursor.u64()?;
        }
        Ok(Self { attr_size, attrs, data, features })
    }

    /// Numbers of the features in the file, in section order.
    pub(crate) fn features(&self) -> impl Iterator<Item = u32> {
        let words = self.features;
        (0..256_u32).filter(move |&at| {
            let word = words.get(at as usize / 64).copied().unwrap_or(0);
            word.wrapping_shr(at) & 1 == 1
        })
    }
}
