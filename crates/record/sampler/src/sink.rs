//! Receivers of samples and clock readings: files or others.

use std::io::Write;

use os::folder::OutFile;

use crate::error::{Result, SampleError};
use crate::kept_code::KeptCode;

/// Max bytes of kernel code in a file: all counted pages with their neighbours, three times 8 MiB.
const MAX_CODE_BYTES: u64 = 24 << 20;

/// Receives samples.
pub trait SampleSink: Send {
    /// Writes whole records of a perf.data in pipe mode.
    ///
    /// # Errors
    /// When it fails, sampling ends.
    fn samples(&mut self, records: &[u8]) -> Result<()>;

    /// Writes whole entries of the file of clock readings.
    ///
    /// # Errors
    /// See [`SampleSink::samples`].
    fn clocks(&mut self, entries: &[u8]) -> Result<()>;

    /// Max bytes of kernel code to accept; `None`: no code.
    fn most_code_bytes(&self) -> Option<u64> {
        None
    }

    /// Writes the code once, after sampling has ended; returns the size of the output.
    ///
    /// # Errors
    /// See [`SampleSink::samples`].
    fn code(&mut self, _code: &KeptCode) -> Result<u64> {
        Ok(0)
    }
}

#[derive(Debug)]
pub struct SampleFiles {
    pub samples: OutFile,
    /// Clock readings.
    pub clocks: OutFile,
    /// The kernel code around samples; `None`: not kept.
    pub code: Option<OutFile>,
}

impl SampleSink for SampleFiles {
    fn samples(&mut self, records: &[u8]) -> Result<()> {
        put(&mut self.samples, records)
    }

    fn clocks(&mut self, entries: &[u8]) -> Result<()> {
        put(&mut self.clocks, entries)
    }

    fn most_code_bytes(&self) -> Option<u64> {
        self.code.as_ref().map(|_| MAX_CODE_BYTES)
    }

    fn code(&mut self, code: &KeptCode) -> Result<u64> {
        let Some(file) = self.code.as_mut().filter(|_| !code.is_empty()) else { return Ok(0) };
        let elf = code.to_elf();
        put(file, &elf)?;
        Ok(elf.len() as u64)
    }
}

fn put(file: &mut OutFile, bytes: &[u8]) -> Result<()> {
    let path = file.path().to_owned();
    file.write_all(bytes).map_err(SampleError::io("write", &path))
}
