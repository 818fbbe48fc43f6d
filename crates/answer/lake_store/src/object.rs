//! A lake in an object store. [`Objects`] is the interface of a store. This module maps files, parts of files and steps
//! of a lake to such calls, and passes calls to another process, which has the store's client and its keys.

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

/// The condition for a put: the object that must exist at the name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Before {
    /// No condition. For names that determine the content.
    Anything,
    /// No object exists.
    Nothing,
    /// The object of this version.
    Version(String),
}

/// Calls to a store. Each ends within minutes, whatever the store does.
pub trait Objects: Send + Sync {
    /// Puts an object of `bytes` bytes atomically; returns its version.
    ///
    /// # Errors
    /// When it could not be put, or `body` ends early; of the kind [`io::ErrorKind::AlreadyExists`] when the condition
    /// `before` does not hold.
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

    /// Reads bytes of an object.
    ///
    /// # Errors
    /// When they can't be read, or the object has another version.
    fn read(&self, file: &Entry, from: u64, bytes: u64) -> io::Result<Bytes>;

    /// Reads complete objects, several at a time.
    ///
    /// # Errors
    /// When one can't be read.
    fn read_whole(&self, files: &[Entry]) -> io::Result<Vec<Bytes>>;

    /// Removes objects; ignores missing ones.
    ///
    /// # Errors
    /// When one can't be removed.
    fn remove(&self, names: &[String]) -> io::Result<()>;
}
