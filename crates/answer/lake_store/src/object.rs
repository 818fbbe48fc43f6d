//! A lake in an object store. What a store does for it is [`Objects`]; here are files, parts of files and steps of a
//! lake as such calls, and how calls get to another process, which has the store's client and its keys.

mod by_process;
mod file;
mod lake;
mod messages;
mod served;

use std::io::{self, Read};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

pub use by_process::ObjectsByProcess;
pub use file::ObjectFile;
pub use lake::{ObjectLake, UnfinishedObject};
pub use served::serve;

use super::storage::Entry;

/// What has to be at a name before an object is put there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Before {
    /// Whatever is there is replaced: names that say what is in files are put like this.
    Anything,
    /// Nothing.
    Nothing,
    /// The object of this version.
    Version(String),
}

/// Calls to a store. Each ends within some minutes, whatever the store does.
pub trait Objects: Send + Sync {
    /// Puts an object of `bytes` bytes in one step; whoever reads sees all of it or nothing. Says its version.
    ///
    /// # Errors
    /// When it could not be put, or `body` ends early; of the kind [`io::ErrorKind::AlreadyExists`] when something else
    /// than `before` is there.
    fn put(
        &self,
        name: &str,
        bytes: u64,
        body: &mut dyn Read,
        before: &Before,
    ) -> io::Result<Option<String>>;

    /// All objects below a folder, by name.
    ///
    /// # Errors
    /// When they can't be listed.
    fn list(&self, folder: &str) -> io::Result<Vec<Entry>>;

    /// Bytes of an object.
    ///
    /// # Errors
    /// When they can't be read, or another version is there.
    fn read(&self, file: &Entry, from: u64, bytes: u64) -> io::Result<Bytes>;

    /// Whole objects, several at a time.
    ///
    /// # Errors
    /// When one can't be read.
    fn read_whole(&self, files: &[Entry]) -> io::Result<Vec<Bytes>>;

    /// Removes objects; nothing happens where one isn't there.
    ///
    /// # Errors
    /// When one can't be removed.
    fn remove(&self, names: &[String]) -> io::Result<()>;
}
