//! Flushes files to the disk while they are being written.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::FileType;

use crate::folder::file::OutFile;
use crate::folder::observer::{Observer, sync_data};
use crate::folder::open::Folder;

/// A second handle of a file that another thread writes, so that syncing it does not block the
/// writer.
#[derive(Debug)]
pub struct Syncer {
    file: File,
    path: PathBuf,
    observer: Option<Arc<dyn Observer>>,
}

impl Syncer {
    pub(crate) fn new(file: File, path: PathBuf, observer: Option<Arc<dyn Observer>>) -> Self {
        Self { file, path, observer }
    }

    /// Flushes the file's data and length to the disk.
    ///
    /// # Errors
    /// Errors of the disk, including those of much earlier writes.
    pub fn sync(&self) -> io::Result<()> {
        sync_data(&self.file, &self.path, self.observer.as_ref())
    }
}

impl Folder {
    /// Flushes all files in it and in its subfolders, and their names, to the disk; stops early if
    /// `is_over` returns true.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn sync_all(&self, is_over: &dyn Fn() -> bool) -> io::Result<()> {
        for name in self.names()? {
            if is_over() {
                return Ok(());
            }
            match FileType::from_raw_mode(self.stat(&name)?.st_mode) {
                FileType::Directory => self.existing_subfolder(&name)?.sync_all(is_over)?,
                FileType::RegularFile => self.syncer(&name)?.sync()?,
                _ => {}
            }
        }
        self.sync()
    }

    fn syncer(&self, name: &str) -> io::Result<Syncer> {
        Ok(Syncer::new(self.read(name)?, self.path().join(name), self.observer()))
    }
}

impl OutFile {
    /// A duplicate handle for the thread that flushes what this one writes.
    ///
    /// # Errors
    /// If too many files are open.
    pub fn syncer(&self) -> io::Result<Syncer> {
        let (file, observer) = self.shared()?;
        Ok(Syncer::new(file, self.path().to_owned(), observer))
    }
}
