//! Where samples go, and how clocks do: files, or whoever else takes them.

use std::io::Write;

use folder::OutFile;

use crate::error::{Result, SampleError};

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

    /// Whether it takes the kernel's code, too.
    fn takes_code(&self) -> bool {
        false
    }

    /// Takes that, as a whole ELF file.
    ///
    /// # Errors
    /// See [`SampleSink::samples`].
    fn code(&mut self, _elf: &[u8]) -> Result<()> {
        Ok(())
    }
}

/// All as files.
#[derive(Debug)]
pub struct SampleFiles {
    /// The samples.
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

    fn takes_code(&self) -> bool {
        self.code.is_some()
    }

    fn code(&mut self, elf: &[u8]) -> Result<()> {
        self.code.as_mut().map_or(Ok(()), |code| put(code, elf))
    }
}

fn put(file: &mut OutFile, bytes: &[u8]) -> Result<()> {
    let path = file.path().to_owned();
    file.write_all(bytes).map_err(SampleError::io("write", &path))
}
