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
}

/// Both as files.
#[derive(Debug)]
pub struct SampleFiles {
    /// The samples.
    pub samples: OutFile,
    /// How clocks go.
    pub clocks: OutFile,
}

impl SampleSink for SampleFiles {
    fn samples(&mut self, records: &[u8]) -> Result<()> {
        put(&mut self.samples, records)
    }

    fn clocks(&mut self, entries: &[u8]) -> Result<()> {
        put(&mut self.clocks, entries)
    }
}

fn put(file: &mut OutFile, bytes: &[u8]) -> Result<()> {
    let path = file.path().to_owned();
    file.write_all(bytes).map_err(SampleError::io("write", &path))
}
