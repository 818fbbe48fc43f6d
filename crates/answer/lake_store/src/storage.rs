//! The interface between a lake and its storage.

use std::io::{self, Write};
use std::time::SystemTime;

use parquet::file::reader::ChunkReader;
use serde::{Deserialize, Serialize};

/// A file of a lake.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Entry {
    /// Its path from the lake's root, with `/`.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// When it was written.
    pub written: SystemTime,
    /// The ETag of an object's current content; `None` in a folder, which only one run changes at a time.
    pub version: Option<String>,
}

/// Storage that puts files in their place atomically.
pub trait Storage {
    /// A file that is being written.
    type Unfinished: Write + Send;
    /// A file that is open for reading.
    type Read: ChunkReader + 'static;

    /// Begins a file, which is invisible to readers.
    ///
    /// # Errors
    /// When it can't be made.
    fn begin(&self) -> io::Result<Self::Unfinished>;

    /// Puts a file in its place, atomically and durably, and replaces an existing one.
    ///
    /// # Errors
    /// When that fails; then the previous file stays.
    fn put(&self, file: Self::Unfinished, name: &str) -> io::Result<()>;

    /// Like `put`, but only if the known file, or none, is there.
    ///
    /// # Errors
    /// As `put`; of the kind [`io::ErrorKind::AlreadyExists`] when another run has put a file there meanwhile.
    fn replace(&self, file: Self::Unfinished, name: &str, known: Option<&Entry>) -> io::Result<()>;

    /// Renames a file, atomically and durably, and returns its entry; `None`: this storage has no atomic rename, and
    /// the file stays.
    ///
    /// # Errors
    /// When that fails; then the file stays.
    fn rename(&self, from: &Entry, to: &str) -> io::Result<Option<Entry>>;

    /// Discards a file.
    ///
    /// # Errors
    /// When it can't be removed.
    fn give_up(&self, file: Self::Unfinished) -> io::Result<()>;

    /// All files below a folder, by name; empty if there is no folder.
    ///
    /// # Errors
    /// When they can't be listed.
    fn list(&self, folder: &str) -> io::Result<Vec<Entry>>;

    /// Unfinished files, by name.
    ///
    /// # Errors
    /// When they can't be listed.
    fn unfinished(&self) -> io::Result<Vec<Entry>>;

    /// Opens files, concurrently if that is faster. All files of one call may be kept in memory: see
    /// [`each_open`](super::each_open).
    ///
    /// # Errors
    /// When one can't be opened.
    fn open(&self, files: &[&Entry]) -> io::Result<Vec<Self::Read>>;

    /// Removes files; ignores missing ones.
    ///
    /// # Errors
    /// When one can't be removed.
    fn remove(&self, files: &[&str]) -> io::Result<()>;

    /// The first write error, if any: writers of tables reduce it to a text.
    fn write_fault(&self) -> Option<String>;
}
