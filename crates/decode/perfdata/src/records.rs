//! The records of a perf.data, one after the other: a head of eight bytes, and a body.

use raw_bytes::{ByteOrder, Cursor};

/// Bytes of `struct perf_event_header`.
const HEAD_BYTES: u16 = 8;

/// What a record is (`PERF_RECORD_*`; from 64 on those that perf itself writes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// Records were lost, and are counted.
    Lost,
    /// A thread got a name.
    Comm,
    /// An event happened, or a timer ran off.
    Sample,
    /// Samples were lost, and are counted.
    LostSamples,
    /// An event of a pipe: what is in the head of a file.
    HeaderAttr,
    /// Formats of tracepoints follow, in a pipe.
    TracingData,
    /// Traces of a processor follow.
    AuxTrace,
    /// A feature section, in a pipe.
    HeaderFeature,
    /// Compressed records (`perf record -z`), of an older perf or a newer.
    Compressed,
    /// Another, by its number.
    Other(u32),
}

impl RecordKind {
    const fn of(number: u32) -> Self {
        match number {
            2 => Self::Lost,
            3 => Self::Comm,
            9 => Self::Sample,
            13 => Self::LostSamples,
            64 => Self::HeaderAttr,
            66 => Self::TracingData,
            71 => Self::AuxTrace,
            80 => Self::HeaderFeature,
            81 | 83 => Self::Compressed,
            other => Self::Other(other),
        }
    }
}

/// A record.
#[derive(Clone, Copy, Debug)]
pub struct Record<'f> {
    /// What it is.
    pub kind: RecordKind,
    /// Its flags, among them in which mode the CPU was.
    pub misc: u16,
    /// What follows its head.
    pub body: &'f [u8],
    /// Where its body lies in the file.
    pub offset: u64,
}

impl Record<'_> {
    /// Where it ends in the file.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.body.len() as u64)
    }
}

/// Records, up to the first that can't be one.
#[derive(Clone, Debug)]
pub struct Records<'f> {
    cursor: Cursor<'f>,
    order: ByteOrder,
}

impl<'f> Records<'f> {
    pub(crate) fn new(data: &'f [u8], order: ByteOrder, offset: u64) -> Self {
        Self { cursor: Cursor::new(data, order, offset), order }
    }

    /// Where the next one begins: the end, or what can't be a record.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.cursor.offset()
    }

    /// Bytes that are left.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.cursor.rest().len() as u64
    }

    fn record(&mut self) -> Option<Record<'f>> {
        let mut cursor = self.cursor.clone();
        let (kind, misc, size) = (cursor.u32().ok()?, cursor.u16().ok()?, cursor.u16().ok()?);
        let len = size.checked_sub(HEAD_BYTES)?;
        let offset = cursor.offset();
        let body = cursor.take(len.into()).ok()?;
        let kind = RecordKind::of(kind);
        // What these two announce is not counted in their size.
        let mut announced = Cursor::new(body, self.order, offset);
        let more = match kind {
            RecordKind::AuxTrace => announced.u64().ok()?,
            RecordKind::TracingData => u64::from(announced.u32().ok()?).next_multiple_of(8),
            _ => 0,
        };
        cursor.take(more).ok()?;
        self.cursor = cursor;
        Some(Record { kind, misc, body, offset })
    }
}

impl<'f> Iterator for Records<'f> {
    type Item = Record<'f>;

    fn next(&mut self) -> Option<Self::Item> {
        self.record()
    }
}
