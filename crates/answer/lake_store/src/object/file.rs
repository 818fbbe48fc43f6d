//! An object as a file for the Parquet reader.

use std::io::{self, Read};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

use super::Objects;
use crate::storage::Entry;

/// Min bytes of a request: page headers lie close to each other.
const BLOCK_BYTES: u64 = 1 << 20;
/// Max bytes of a request.
const MAX_BYTES: u64 = 8 << 20;

/// An object, whose blocks are read when needed.
#[derive(Debug)]
pub struct ObjectFile<O> {
    objects: Arc<O>,
    entry: Entry,
    /// Start and content of the last block read.
    block: Mutex<(u64, Bytes)>,
}

impl<O: Objects> ObjectFile<O> {
    /// An object without any bytes in memory.
    pub(super) fn new(objects: Arc<O>, entry: Entry) -> Self {
        Self { objects, entry, block: Mutex::default() }
    }

    /// An object with all bytes in memory.
    pub(super) fn with_bytes(objects: Arc<O>, entry: Entry, bytes: Bytes) -> Self {
        Self { objects, entry, block: Mutex::new((0, bytes)) }
    }

    /// Bytes from a position: at least one and at most `max`; none at the end.
    fn some(&self, from: u64, max: u64) -> io::Result<Bytes> {
        let remaining = self.entry.bytes.saturating_sub(from);
        if remaining == 0 || max == 0 {
            return Ok(Bytes::new());
        }
        let mut block = self.block.lock();
        let is_in = |begin: u64, bytes: &Bytes| (begin..begin + bytes.len() as u64).contains(&from);
        if !is_in(block.0, &block.1) {
            let bytes = max.clamp(BLOCK_BYTES, MAX_BYTES).min(remaining);
            *block = (from, self.objects.read(&self.entry, from, bytes)?);
            if !is_in(block.0, &block.1) {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let at = usize::try_from(from - block.0).map_err(io::Error::other)?;
        let end = block.1.len().min(at.saturating_add(usize::try_from(max).unwrap_or(usize::MAX)));
        Ok(block.1.slice(at..end))
    }
}

impl<O> Length for ObjectFile<O> {
    fn len(&self) -> u64 {
        self.entry.bytes
    }
}

impl<O: Objects + 'static> ChunkReader for ObjectFile<O> {
    type T = ObjectReader<O>;

    fn get_read(&self, start: u64) -> Result<ObjectReader<O>> {
        let block = self.block.lock().clone();
        let (objects, entry) = (Arc::clone(&self.objects), self.entry.clone());
        let file = ObjectFile { objects, entry, block: Mutex::new(block) };
        Ok(ObjectReader { file, at: start })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let end = start.checked_add(length as u64).filter(|end| *end <= self.entry.bytes);
        let Some(end) = end else {
            let name = &self.entry.name;
            return Err(ParquetError::EOF(format!("{name}: {length} bytes from {start} on")));
        };
        let first = self.some(start, length as u64)?;
        // Avoids a copy if one block has all bytes.
        if first.len() == length {
            return Ok(first);
        }
        let mut all = BytesMut::with_capacity(length);
        all.extend_from_slice(&first);
        while all.len() < length {
            let at = start + all.len() as u64;
            all.extend_from_slice(&self.some(at, end - at)?);
        }
        Ok(all.freeze())
    }
}

/// A reader of an object from a position.
#[derive(Debug)]
pub struct ObjectReader<O> {
    file: ObjectFile<O>,
    at: u64,
}

impl<O: Objects> Read for ObjectReader<O> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.some(self.at, into.len() as u64)?.as_ref().read(into)?;
        self.at += read as u64;
        Ok(read)
    }
}
