//! What a lake asks of the place where it is.

use std::io::{self, Write};
use std::time::SystemTime;

use parquet::file::reader::ChunkReader;
use serde::{Deserialize, Serialize};

/// A file of a lake.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Entry {
    /// Its name from the lake's root on, with `/`.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// When it was written.
    pub written: SystemTime,
    /// What an object store calls what is in it now, an ETag; `None` in a folder, which one run changes at a time.
    pub version: Option<String>,
}

/// A place with files that are put there whole.
pub trait Storage {
    /// A file that is not there yet.
    type Unfinished: Write + Send;
    /// A file that is read.
    type Read: ChunkReader + 'static;

    /// Begins a file, which is invisible to readers.
    ///
    /// # Errors
    /// When it can't be made.
    fn begin(&self) -> io::Result<Self::Unfinished>;

    /// Puts a file in its place, in one step and for good, and in place of one that is there.
    ///
    /// # Errors
    /// When that fails; then what was there is.
    fn put(&self, file: Self::Unfinished, name: &str) -> io::Result<()>;

    /// The same in place of what is known to be there, or where nothing is.
    ///
    /// # Errors
    /// As `put`; of the kind [`io::ErrorKind::AlreadyExists`] when another run has put something there meanwhile.
    fn replace(&self, file: Self::Unfinished, name: &str, known: Option<&Entry>) -> io::Result<()>;

    /// Moves a file that is there to another name, in one step and for good, and says what is there now; `None`: nothing
    /// moves in one step here, and it is where it was.
    ///
    /// # Errors
    /// When that fails; then it is where it was.
    fn rename(&self, from: &Entry, to: &str) -> io::Result<Option<Entry>>;

    /// Gives up a file.
    ///
    /// # Errors
    /// When it can't be removed.
    fn give_up(&self, file: Self::Unfinished) -> io::Result<()>;

    /// All files below a folder, by name; none where it isn't there.
    ///
    /// # Errors
    /// When they can't be listed.
    fn list(&self, folder: &str) -> io::Result<Vec<Entry>>;

    /// Files that were begun and are in no place, by name.
    ///
    /// # Errors
    /// When they can't be listed.
    fn unfinished(&self) -> io::Result<Vec<Entry>>;

    /// Opens files, at once where that takes less time. Those of one call may all be kept in memory: see
    /// [`each_open`](super::each_open).
    ///
    /// # Errors
    /// When one can't be.
    fn open(&self, files: &[&Entry]) -> io::Result<Vec<Self::Read>>;

    /// Removes files; nothing happens where one isn't there.
    ///
    /// # Errors
    /// When one can't be removed.
    fn remove(&self, files: &[&str]) -> io::Result<()>;

    /// Why a file could not be written first, if one could not: writers of tables keep no more of it than words.
    fn write_fault(&self) -> Option<String>;
}
