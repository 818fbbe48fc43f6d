//! Having on the disk what was written, while it is written on.

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

    /// Has the file's bytes, and its length, on the disk.
    ///
    /// # Errors
    /// The disk's result, which also covers bytes written long before.
    pub fn sync(&self) -> io::Result<()> {
        sync_data(&self.file, &self.path, self.observer.as_ref())
    }
}

impl Folder {
    /// Has all files in it on the disk, those of its folders too, and their names; stops early where
    /// `is_over` says so.
    ///
    /// # Errors
    /// What the disk says.
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
    /// A second handle for the thread that syncs what this one writes.
    ///
    /// # Errors
    /// When too many files are open.
    pub fn syncer(&self) -> io::Result<Syncer> {
        let (file, observer) = self.shared()?;
        Ok(Syncer::new(file, self.path().to_owned(), observer))
    }
}
