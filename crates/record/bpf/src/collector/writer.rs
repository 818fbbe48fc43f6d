//! The file: one entry after another, each whole when it is written.

use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hypertrace::collected::{Begin, ClockPair, Counts, Entry};
use os::folder::OutFile;

use crate::collector::error::{CollectError, Result};

/// Bytes that go to the file at once.
const BUFFER_BYTES: usize = 256 << 10;

#[derive(Debug)]
pub(crate) struct Writer {
    file: BufWriter<OutFile>,
    path: PathBuf,
    written: Arc<AtomicU64>,
    hypercalls: u64,
}

impl Writer {
    /// Writes to a file; `written` counts its bytes.
    pub(crate) fn new(file: OutFile, written: Arc<AtomicU64>) -> Self {
        let path = file.path().to_owned();
        let file = BufWriter::with_capacity(BUFFER_BYTES, file);
        Self { file, path, written, hypercalls: 0 }
    }

    pub(crate) fn begin(&mut self, begin: &Begin) -> Result<()> {
        self.write(&Entry::Begin(begin.clone()).to_bytes())
    }

    pub(crate) fn pair(&mut self, pair: ClockPair) -> Result<()> {
        self.write(&Entry::Pair(pair).to_bytes())
    }

    pub(crate) fn counts(&mut self, counts: Counts) -> Result<()> {
        self.write(&Entry::Counts(counts).to_bytes())
    }

    /// A record of the programs, as they wrote it: with all registers there are, or as many as were
    /// asked for.
    pub(crate) fn hypercall(&mut self, record: &[u8]) -> Result<()> {
        self.hypercalls += 1;
        self.write(&Entry::hypercall_bytes(record))
    }

    /// Hypercalls written.
    pub(crate) fn hypercalls(&self) -> u64 {
        self.hypercalls
    }

    /// Bytes written.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Has all of it in the file.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.file.flush().map_err(CollectError::io("write", &self.path))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(CollectError::io("write", &self.path))?;
        self.written.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }
}
