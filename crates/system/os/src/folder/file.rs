//! A file that is written sequentially.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::pipe::{SpliceFlags, splice};

use crate::folder::observer::{Observer, Operation, before, sync_data, uninterrupted};

/// An open file, positioned at its end.
#[derive(Debug)]
pub struct OutFile {
    file: File,
    path: PathBuf,
    /// Position of the next byte.
    offset: u64,
    observer: Option<Arc<dyn Observer>>,
}

impl OutFile {
    pub(crate) fn new(
        mut file: File,
        path: PathBuf,
        observer: Option<Arc<dyn Observer>>,
    ) -> io::Result<Self> {
        let offset = file.seek(SeekFrom::End(0))?;
        Ok(Self { file, path, offset, observer })
    }

    /// The path at creation, for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes up to the write position: all bytes, unless the position was moved back.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.offset
    }

    /// Whether the file is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.offset == 0
    }

    /// Truncates the file; the next byte goes to its end.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn cut(&mut self, bytes: u64) -> io::Result<()> {
        uninterrupted(|| {
            self.before(&Operation::SetLength(&self.path, bytes))?;
            self.file.set_len(bytes)
        })?;
        self.offset = self.file.seek(SeekFrom::Start(bytes))?;
        Ok(())
    }

    /// Moves at most `most_bytes` from a pipe to the end of the file without copying; returns the
    /// number of bytes.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn splice_from(&mut self, pipe: impl AsFd, most_bytes: usize) -> io::Result<usize> {
        let (path, offset) = (&*self.path, self.offset);
        let moved = uninterrupted(|| {
            self.before(&Operation::Splice { path, offset, most_bytes })?;
            Ok(splice(&pipe, None, &self.file, None, most_bytes, SpliceFlags::MOVE)?)
        })?;
        self.offset = self.offset.saturating_add(moved as u64);
        Ok(moved)
    }

    /// Flushes data and length to the disk.
    ///
    /// # Errors
    /// Errors of the disk, including those of much earlier writes.
    pub fn sync(&self) -> io::Result<()> {
        sync_data(&self.file, &self.path, self.observer.as_ref())
    }

    /// A duplicate handle of the open file, with its observer.
    pub(crate) fn shared(&self) -> io::Result<(File, Option<Arc<dyn Observer>>)> {
        Ok((self.file.try_clone()?, self.observer.clone()))
    }

    fn before(&self, operation: &Operation<'_>) -> io::Result<()> {
        before(self.observer.as_ref(), operation)
    }
}

impl From<OutFile> for File {
    /// For writers that need a `File`; the observer does not see their operations.
    fn from(file: OutFile) -> Self {
        file.file
    }
}

impl Seek for OutFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.offset = self.file.seek(to)?;
        Ok(self.offset)
    }
}

impl Write for OutFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (path, offset) = (&*self.path, self.offset);
        self.before(&Operation::Write { path, offset, bytes })?;
        let written = self.file.write(bytes)?;
        self.offset = self.offset.saturating_add(written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
