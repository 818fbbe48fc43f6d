//! Writes the file: a sequence of complete entries.

use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hypertrace::collected::{Begin, ClockPair, Counts, Entry};
use os::folder::OutFile;

use crate::collector::error::{CollectError, Result};

/// Buffer size of the file.
const BUFFER_BYTES: usize = 256 << 10;

#[derive(Debug)]
pub(crate) struct Writer {
    file: BufWriter<OutFile>,
    path: PathBuf,
    written: Arc<AtomicU64>,
    hypercalls: u64,
}

impl Writer {
    /// `written` counts the bytes.
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

    /// Writes a record of the programs, with all or the requested number of registers.
    pub(crate) fn hypercall(&mut self, record: &[u8]) -> Result<()> {
        self.hypercalls += 1;
        self.write(&Entry::hypercall_bytes(record))
    }

    /// Number of hypercalls written.
    pub(crate) fn hypercalls(&self) -> u64 {
        self.hypercalls
    }

    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        self.file.flush().map_err(CollectError::io("write", &self.path))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(CollectError::io("write", &self.path))?;
        self.written.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }
}
