//! What a lake asks of the place where it is.

use std::io::{self, Read, Write};
use std::time::SystemTime;

use parquet::file::reader::ChunkReader;

/// A file of a lake.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Its name from the lake's root on, with `/`.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// When it was written.
    pub written: SystemTime,
}

/// A place with files that are put there whole.
pub trait Storage {
    /// A file that is not there yet.
    type Unfinished: Write + Send;
    /// A file that is read.
    type Read: ChunkReader + Read + 'static;

    /// Begins a file; nobody sees it.
    ///
    /// # Errors
    /// When it can't be made.
    fn begin(&self) -> io::Result<Self::Unfinished>;

    /// Puts a file in its place, in one step and for good, and in place of one that is there.
    ///
    /// # Errors
    /// When that fails; then what was there is.
    fn put(&self, file: Self::Unfinished, name: &str) -> io::Result<()>;

    /// Moves a file that is there to another name, in one step and for good.
    ///
    /// # Errors
    /// When that fails; then it is where it was.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

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

    /// Opens a file.
    ///
    /// # Errors
    /// When it can't be.
    fn open(&self, name: &str) -> io::Result<Self::Read>;

    /// Removes a file; nothing happens where it isn't there.
    ///
    /// # Errors
    /// When it can't be removed.
    fn remove(&self, name: &str) -> io::Result<()>;
}
