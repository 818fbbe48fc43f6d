//! Reports the operations of a folder's writers to tests, before they are executed.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// An operation on a file or folder. Paths begin with the path by which the folder was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<'a> {
    /// Create a file, or open one for writing.
    Open(&'a Path),
    /// Create a folder.
    MakeFolder(&'a Path),
    /// Write bytes at an offset.
    Write {
        /// The file.
        path: &'a Path,
        /// Offset in the file.
        offset: u64,
        bytes: &'a [u8],
    },
    /// Move bytes from a pipe to an offset.
    Splice {
        /// The file.
        path: &'a Path,
        /// Offset in the file.
        offset: u64,
        /// Maximum number of bytes.
        most_bytes: usize,
    },
    /// Set the length of a file.
    SetLength(&'a Path, u64),
    /// Flush a file, or a folder's entries, to the disk.
    Sync(&'a Path),
    /// Rename a file.
    Rename(&'a Path, &'a Path),
    /// Remove a file or an empty folder.
    Remove(&'a Path),
}

/// Observes operations, and can make them fail.
pub trait Observer: fmt::Debug + Send + Sync {
    /// Called before each operation; an error becomes the operation's result, and the operation is
    /// not executed.
    ///
    /// # Errors
    /// Those that the operation should return.
    fn before(&self, operation: &Operation<'_>) -> io::Result<()>;
}

/// Reports an operation to the observer, if there is one.
pub(crate) fn before(
    observer: Option<&Arc<dyn Observer>>,
    operation: &Operation<'_>,
) -> io::Result<()> {
    observer.map_or(Ok(()), |observer| observer.before(operation))
}

/// Flushes a file's data and length to the disk.
pub(crate) fn sync_data(
    file: &File,
    path: &Path,
    observer: Option<&Arc<dyn Observer>>,
) -> io::Result<()> {
    uninterrupted(|| {
        before(observer, &Operation::Sync(path))?;
        file.sync_data()
    })
}

/// Repeats an operation that a signal interrupts: network and user-space file systems can return
/// this error.
pub(crate) fn uninterrupted<T>(mut operation: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match operation() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}
