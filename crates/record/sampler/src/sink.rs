//! Receivers of samples and clock readings: files or others.

use std::io::Write;

use os::folder::OutFile;

use crate::error::{Result, SampleError};
use crate::kept_code::KeptCode;

/// Bytes of the kernel's code that files keep: all that is looked at, three times 8 MiB.
const MAX_CODE_BYTES: u64 = 24 << 20;

/// Takes what is sampled.
pub trait SampleSink: Send {
    /// Takes whole records of a perf.data in the form of a pipe.
    ///
    /// # Errors
    /// When it can't: nothing more is sampled then.
    fn samples(&mut self, records: &[u8]) -> Result<()>;

    /// Takes whole entries of the file that says how clocks go.
    ///
    /// # Errors
    /// See [`SampleSink::samples`].
    fn clocks(&mut self, entries: &[u8]) -> Result<()>;

    /// How many bytes of the kernel's code it takes, too; none: it takes no code.
    fn most_code_bytes(&self) -> Option<u64> {
        None
    }

    /// Takes that, once, when nothing more is sampled; the bytes that it made of it.
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
    /// How clocks go.
    pub clocks: OutFile,
    /// The kernel's code where samples saw it; none: it is not kept.
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
