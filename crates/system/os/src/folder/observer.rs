//! Shows tests the operations of a folder's writers, each in advance.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// One operation on a file or folder. Paths are as the folder was named when it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<'a> {
    /// A new file, or one that is opened to be written on.
    Open(&'a Path),
    /// A new folder.
    MakeFolder(&'a Path),
    /// Bytes at an offset.
    Write {
        /// The file.
        path: &'a Path,
        /// Where they go.
        offset: u64,
        bytes: &'a [u8],
    },
    /// Bytes out of a pipe at an offset.
    Splice {
        /// The file.
        path: &'a Path,
        /// Where they go.
        offset: u64,
        /// How many at most.
        most_bytes: usize,
    },
    /// A file gets another length.
    SetLength(&'a Path, u64),
    /// A file, or a folder's list of names, goes to the disk.
    Sync(&'a Path),
    /// A file gets the name of another.
    Rename(&'a Path, &'a Path),
    /// A file or an empty folder goes.
    Remove(&'a Path),
}

/// Sees operations, and may have them fail.
pub trait Observer: fmt::Debug + Send + Sync {
    /// Called before each operation; an error stands for its result, and it is not done.
    ///
    /// # Errors
    /// Those that the operation is to have.
    fn before(&self, operation: &Operation<'_>) -> io::Result<()>;
}

/// Shows an operation to the observer, if there is one.
pub(crate) fn before(
    observer: Option<&Arc<dyn Observer>>,
    operation: &Operation<'_>,
) -> io::Result<()> {
    observer.map_or(Ok(()), |observer| observer.before(operation))
}

/// Has a file's bytes, and its length, on the disk.
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

/// Does an operation until no signal interrupts it: files of networks and of user space have such.
pub(crate) fn uninterrupted<T>(mut operation: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match operation() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}
