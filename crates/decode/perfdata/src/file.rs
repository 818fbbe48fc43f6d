//! The head of a perf.data: where its records are, which events were recorded, what else it says.

use std::collections::HashMap;
use std::ops::Range;

use raw_bytes::{ByteOrder, Cursor, Truncated};

use crate::attr::{EventAttr, bit};
use crate::features::{Features, MOST_FEATURES};
use crate::records::{Record, RecordKind, Records};
use crate::sample::{Sample, SampleId};

/// Bytes of `struct perf_file_header`.
const HEADER_BYTES: u64 = 104;
/// Bytes of `struct perf_pipe_file_header`.
const PIPE_HEADER_BYTES: u64 = 16;
/// Events that a file may have, at most.
const MOST_ATTRS: usize = 1 << 16;

/// A file that can't be read as a perf.data at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PerfDataError {
    /// It doesn't begin with the magic of either byte order.
    #[error("not a perf.data: the file does not begin with PERFILE2")]
    NotPerfData,
    /// The file ends within its head.
    #[error("the file ends inside its header; copy it again from where it was recorded")]
    Short(#[from] Truncated),
    /// A head that is neither that of a file nor of a pipe.
    #[error("a perf.data whose header says {size} bytes at offset 0x8: files have 104, pipes 16")]
    Header {
        /// The size that it says.
        size: u64,
    },
}

/// A perf.data whose head has been read.
#[derive(Clone, Debug)]
pub struct PerfData {
    /// Byte order of all its numbers.
    pub order: ByteOrder,
    /// It was written to a pipe: what else would be in the head is in records.
    pub is_pipe: bool,
    /// Its recorder didn't write the end: there may be more records than it knew of.
    pub is_unfinished: bool,
    /// The file ends before what its head says that it has.
    pub is_cut: bool,
    /// Events that were recorded.
    pub attrs: Vec<EventAttr>,
    /// What else it says.
    pub features: Features,
    /// Where its records are.
    data: Range<u64>,
    /// By id, the index of the attribute.
    by_id: HashMap<u64, usize>,
}

impl PerfData {
    /// Reads the head of a file.
    ///
    /// # Errors
    /// When it is no perf.data, or ends within its head.
    pub fn parse(file: &[u8]) -> Result<Self, PerfDataError> {
        let order = match file.get(..8) {
            Some(b"PERFILE2") => ByteOrder::Little,
            Some(b"2ELIFREP") => ByteOrder::Big,
            _ => return Err(PerfDataError::NotPerfData),
        };
        let mut cursor = Cursor::new(file, order, 0);
        let _magic = cursor.u64()?;
        let size = cursor.u64()?;
        let mut perf = Self {
            order,
            is_pipe: size == PIPE_HEADER_BYTES,
            is_unfinished: false,
            is_cut: false,
            attrs: Vec::new(),
            features: Features::default(),
            data: PIPE_HEADER_BYTES..file.len() as u64,
            by_id: HashMap::new(),
        };
        match size {
            PIPE_HEADER_BYTES => perf.read_pipe(file),
            HEADER_BYTES => perf.read_head(file, cursor)?,
            size => return Err(PerfDataError::Header { size }),
        }
        let Self { features, attrs, by_id, .. } = &mut perf;
        features.name(attrs);
        for (at, attr) in attrs.iter().enumerate() {
            by_id.extend(attr.ids.iter().map(|&id| (id, at)));
        }
        Ok(perf)
    }

    /// The rest of the head of a file: sections of attributes, of records, of types; then features.
    fn read_head(&mut self, file: &[u8], mut cursor: Cursor<'_>) -> Result<(), Truncated> {
        let attr_size = cursor.u64()?;
        let (attrs_at, attrs_len) = (cursor.u64()?, cursor.u64()?);
        let (data_at, data_len) = (cursor.u64()?, cursor.u64()?);
        let _types = (cursor.u64()?, cursor.u64()?);
        let words = [cursor.u64()?, cursor.u64()?, cursor.u64()?, cursor.u64()?];
        let order = self.order;
        // The last 16 bytes of an entry say where its ids are.
        let entries = part(file, attrs_at, attrs_len);
        let entry_size = usize::try_from(attr_size).unwrap_or(usize::MAX).max(64);
        for entry in entries.chunks_exact(entry_size).take(MOST_ATTRS) {
            let Some((attr, ids)) = entry.split_last_chunk::<16>() else { continue };
            let mut attr = EventAttr::parse(attr, order, attrs_at)?;
            let mut ids = Cursor::new(ids, order, attrs_at);
            let (ids_at, ids_len) = (ids.u64()?, ids.u64()?);
            attr.take_ids(part(file, ids_at, ids_len), order);
            self.attrs.push(attr);
        }
        // A recorder that was killed has not written how much there is, nor what follows it.
        self.is_unfinished = data_len == 0;
        let end = data_at.saturating_add(data_len);
        self.is_cut = end > file.len() as u64;
        self.data = data_at..if self.is_unfinished { file.len() as u64 } else { end };
        if !self.is_unfinished && !self.is_cut {
            self.is_cut = self.read_features(file, end, words).is_err();
        }
        Ok(())
    }

    /// The sections behind the records, one for each bit that is set in `words`.
    fn read_features(&mut self, file: &[u8], at: u64, words: [u64; 4]) -> Result<(), Truncated> {
        let mut sections = Cursor::new(part(file, at, u64::MAX), self.order, at);
        for number in 0..MOST_FEATURES {
            let word = words.get((number / 64) as usize).copied().unwrap_or(0);
            if word >> (number % 64) & 1 == 0 {
                continue;
            }
            let (at, len) = (sections.u64()?, sections.u64()?);
            self.features.take(number, part(file, at, len), self.order, at);
        }
        Ok(())
    }

    /// What records of a pipe say of events and of the machine.
    fn read_pipe(&mut self, file: &[u8]) {
        let order = self.order;
        for record in self.records(file) {
            let mut cursor = Cursor::new(record.body, order, record.offset);
            match record.kind {
                RecordKind::HeaderAttr => drop(self.take_attr(record.body, record.offset)),
                RecordKind::HeaderFeature => {
                    if let Ok(number) = cursor.u64() {
                        let number = u32::try_from(number).unwrap_or(u32::MAX);
                        self.features.take(number, cursor.rest(), order, cursor.offset());
                    }
                }
                RecordKind::TracingData => {
                    // The formats follow the record.
                    let len = cursor.u32().unwrap_or(0);
                    let at = record.end();
                    let len = part(file, at, len.into()).len() as u64;
                    self.features.tracing_data = Some(at..at.saturating_add(len));
                }
                _ => {}
            }
        }
    }

    /// A record with an attribute of the size that it says itself, and its ids behind.
    fn take_attr(&mut self, body: &[u8], offset: u64) -> Option<()> {
        let mut head = Cursor::new(body, self.order, offset);
        let (_kind, size) = (head.u32().ok()?, head.u32().ok()?);
        let (attr, ids) = body.split_at_checked(usize::try_from(size).ok()?)?;
        let mut attr = EventAttr::parse(attr, self.order, offset).ok()?;
        attr.take_ids(ids, self.order);
        if self.attrs.len() < MOST_ATTRS {
            self.attrs.push(attr);
        }
        Some(())
    }

    /// Its records, in the order of the file.
    #[must_use]
    pub fn records<'f>(&self, file: &'f [u8]) -> Records<'f> {
        let begin = self.data.start.min(file.len() as u64);
        let len = self.data.end.saturating_sub(begin);
        Records::new(part(file, begin, len), self.order, begin)
    }

    /// The attribute of a sample or of another record, by the id in it; the only one where there is one.
    #[must_use]
    pub fn attr_of(&self, record: &Record<'_>) -> Option<&EventAttr> {
        let first = self.attrs.first()?;
        if self.attrs.len() == 1 {
            return Some(first);
        }
        let id = self.id_of(record, first);
        id.and_then(|id| self.attrs.get(*self.by_id.get(&id)?))
    }

    /// The id in a record, whose place is the same for all events of a file.
    fn id_of(&self, record: &Record<'_>, any: &EventAttr) -> Option<u64> {
        let before = bit::IP | bit::TID | bit::TIME | bit::ADDR;
        let mut cursor = Cursor::new(record.body, self.order, record.offset);
        if record.kind != RecordKind::Sample {
            return SampleId::read(record, any, self.order)?.id;
        }
        if any.sample_type & bit::IDENTIFIER == 0 {
            let words = (any.sample_type & before).count_ones();
            cursor.take(u64::from(words).saturating_mul(8)).ok()?;
            (any.sample_type & bit::ID != 0).then_some(())?;
        }
        cursor.u64().ok()
    }

    /// A record as a sample; `None`: it is none, or is not whole.
    #[must_use]
    pub fn sample<'f>(&self, record: &Record<'f>) -> Option<Sample<'f>> {
        (record.kind == RecordKind::Sample).then_some(())?;
        Sample::read(record, self.attr_of(record)?, self.order)
    }

    /// Who a record that is no sample is about, where it says so.
    #[must_use]
    pub fn sample_id(&self, record: &Record<'_>) -> Option<SampleId> {
        SampleId::read(record, self.attrs.first()?, self.order)
    }
}

/// The bytes of a range, less what lies past the end.
fn part(file: &[u8], offset: u64, len: u64) -> &[u8] {
    let rest = usize::try_from(offset).ok().and_then(|at| file.get(at..)).unwrap_or_default();
    let len = usize::try_from(len).unwrap_or(usize::MAX).min(rest.len());
    rest.get(..len).unwrap_or_default()
}
