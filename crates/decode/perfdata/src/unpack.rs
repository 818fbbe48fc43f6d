//! Decompresses records: a single zstd stream continues through all compressed records.
//!
//! A record of type COMPRESSED has the next bytes of the stream. They decompress to records, which
//! can cross the boundaries of compressed records; uncompressed records can be in between. After a
//! damaged compressed record, the rest of the stream is lost.

use std::io::{self, Read};

use raw_bytes::{ByteOrder, bytes, counted, slice};
use zstd::stream::raw::{DParameter, Decoder, Operation};

use crate::{Damage, Record, Records, kind};

/// Maximum window of the stream, as a power of two: 128 MiB, which decompression holds in memory.
/// perf uses at most 8 MiB.
const MAX_WINDOW_LOG: u32 = 27;
/// Bytes per decompression step.
const STEP_BYTES: usize = 64 << 10;
/// Minimum distance between two stored origins, in unpacked bytes.
const PLACE_STEP: u64 = 4096;

/// The origin of unpacked records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Bytes of unpacked records before it.
    pub unpacked: u64,
    /// File offset of the record that contains them.
    pub offset: u64,
}

/// Decompresses the records of a file during reading. Records with data after them (formats,
/// hardware traces) are skipped together with that data.
pub struct Unpacked<'f> {
    records: Records<'f>,
    order: ByteOrder,
    decoder: Decoder<'static>,
    /// The unread rest of a compressed record.
    input: &'f [u8],
    /// Offset of that record.
    input_at: u64,
    /// The start of a record whose end has not been decompressed.
    partial_record: Vec<u8>,
    /// Complete records to read, and the read position.
    out: Vec<u8>,
    out_at: usize,
    scratch: Vec<u8>,
    written: u64,
    places: Vec<Place>,
    damage: Vec<Damage>,
    /// The stream is damaged: offset of the damage, number of lost compressed records, and their
    /// bytes.
    lost: Option<(u64, u64, u64)>,
    ended: bool,
}

impl std::fmt::Debug for Unpacked<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Unpacked");
        shown.field("written", &self.written).field("damage", &self.damage).finish_non_exhaustive()
    }
}

impl<'f> Unpacked<'f> {
    pub(crate) fn new(records: Records<'f>, order: ByteOrder) -> io::Result<Self> {
        let mut decoder = Decoder::new()?;
        decoder.set_parameter(DParameter::WindowLogMax(MAX_WINDOW_LOG))?;
        Ok(Self {
            records,
            order,
            decoder,
            input: &[],
            input_at: 0,
            partial_record: Vec::new(),
            out: Vec::new(),
            out_at: 0,
            scratch: vec![0; STEP_BYTES],
            written: 0,
            places: Vec::new(),
            damage: Vec::new(),
            lost: None,
            ended: false,
        })
    }

    /// The origins of the records and the damage, after everything has been read.
    #[must_use]
    pub fn finish(self) -> (Vec<Place>, Vec<Damage>) {
        (self.places, self.damage)
    }

    /// Decompresses the next records to `out`, if there are more.
    fn step(&mut self) {
        if !self.input.is_empty() {
            return self.unpack();
        }
        match self.records.next() {
            None => self.end(),
            Some(Err(damage)) => self.damage.push(damage),
            Some(Ok(record)) => self.take(&record),
        }
    }

    fn take(&mut self, record: &Record<'f>) {
        let packed = match record.kind {
            kind::AUXTRACE | kind::TRACING_DATA => return,
            kind::COMPRESSED => record.body(),
            kind::COMPRESSED2 => {
                let size = record.order.u64_at(record.body(), 0).unwrap_or(0);
                slice::range(record.body(), 8, size)
            }
            _ => {
                self.place(record.offset);
                return self.out.extend_from_slice(record.bytes);
            }
        };
        match &mut self.lost {
            Some((_, records, bytes)) => {
                *records = records.saturating_add(1);
                *bytes = bytes.saturating_add(packed.len() as u64);
            }
            None => (self.input, self.input_at) = (packed, record.offset),
        }
    }

    /// Decompresses a part of the input.
    fn unpack(&mut self) {
        let run = self.decoder.run_on_buffers(self.input, &mut self.scratch);
        let status = match run {
            Ok(status) if status.bytes_read > 0 || status.bytes_written > 0 => status,
            Ok(_) => return self.lose("the compressed bytes can't be unpacked"),
            Err(error) => return self.lose(&format!("the compressed bytes are damaged: {error}")),
        };
        self.input = self.input.get(status.bytes_read..).unwrap_or_default();
        self.partial_record
            .extend_from_slice(self.scratch.get(..status.bytes_written).unwrap_or_default());
        // After a full step, the decompressor may have more output for the input that it has read.
        if self.input.is_empty() && status.bytes_written == self.scratch.len() {
            self.drain();
        }
        self.take_whole();
    }

    /// Decompresses input that the decompressor has read but not yet unpacked.
    fn drain(&mut self) {
        while let Ok(status) = self.decoder.run_on_buffers(&[], &mut self.scratch) {
            let bytes = self.scratch.get(..status.bytes_written).unwrap_or_default();
            self.partial_record.extend_from_slice(bytes);
            self.take_whole();
            if status.bytes_written < self.scratch.len() || self.lost.is_some() {
                return;
            }
        }
    }

    /// Moves complete records from the unpacked bytes to `out`.
    fn take_whole(&mut self) {
        self.place(self.input_at);
        let mut at = 0_usize;
        while let Some(size) = self.order.u16_at(&self.partial_record, at.saturating_add(6)) {
            if size < 8 {
                self.partial_record.drain(..at);
                return self.lose(&format!(
                    "an unpacked record claims {}, fewer than its header has",
                    bytes(size)
                ));
            }
            let end = at.saturating_add(size.into());
            let Some(record) = self.partial_record.get(at..end) else { break };
            self.out.extend_from_slice(record);
            at = end;
        }
        self.partial_record.drain(..at);
    }

    /// Stores an origin if it is far enough from the previous one.
    fn place(&mut self, offset: u64) {
        let unread = self.out.len().saturating_sub(self.out_at);
        let unpacked = self.written.saturating_add(unread as u64);
        let before = self.places.last();
        if before.is_none_or(|place| unpacked.saturating_sub(place.unpacked) >= PLACE_STEP) {
            self.places.push(Place { unpacked, offset });
        }
    }

    fn lose(&mut self, what: &str) {
        let bytes = (self.input.len() as u64).saturating_add(self.partial_record.len() as u64);
        self.damage.push(Damage::new(self.input_at, what));
        self.lost = Some((self.input_at, 1, bytes));
        self.input = &[];
        self.partial_record = Vec::new();
    }

    fn end(&mut self) {
        self.ended = true;
        if let Some((offset, records, bytes)) = self.lost {
            let records_lost = counted(records, "compressed record", "compressed records");
            let are = if records == 1 { "is" } else { "are" };
            let what = format!("{records_lost} ({}) {are} lost", raw_bytes::bytes(bytes));
            self.damage.push(Damage::new(offset, what));
        } else if !self.partial_record.is_empty() {
            let what = format!(
                "the last record is cut short: unpacked {}",
                bytes(self.partial_record.len())
            );
            self.damage.push(Damage::new(self.input_at, what));
        }
    }
}

impl Read for Unpacked<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.out_at >= self.out.len() && !self.ended {
            self.out.clear();
            self.out_at = 0;
            self.step();
        }
        let ready = self.out.get(self.out_at..).unwrap_or_default();
        let len = ready.len().min(into.len());
        if let (Some(from), Some(to)) = (ready.get(..len), into.get_mut(..len)) {
            to.copy_from_slice(from);
        }
        self.out_at = self.out_at.saturating_add(len);
        self.written = self.written.saturating_add(len as u64);
        Ok(len)
    }
}
