//! Removes entries of a folder: symbolic links themselves, never their targets.

use std::io;

use rustix::fs::{AtFlags, FileType, unlinkat};

use crate::folder::observer::{Operation, uninterrupted};
use crate::folder::open::Folder;

impl Folder {
    /// Removes a file.
    ///
    /// # Errors
    /// If it does not exist, or is a folder.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        self.unlink(name, AtFlags::empty())
    }

    /// Removes a file if it exists.
    ///
    /// # Errors
    /// If it is a folder, or cannot be removed.
    pub fn remove_if_there(&self, name: &str) -> io::Result<()> {
        match self.remove(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// Removes an empty subfolder.
    ///
    /// # Errors
    /// If it is not empty.
    pub fn remove_empty(&self, name: &str) -> io::Result<()> {
        self.unlink(name, AtFlags::REMOVEDIR)
    }

    /// Removes a subfolder with all its content.
    ///
    /// # Errors
    /// If it is not a folder of this user, or if some of its content cannot be removed.
    pub fn remove_all(&self, name: &str) -> io::Result<()> {
        let folder = self.existing_subfolder(name)?;
        for name in folder.names()? {
            if FileType::from_raw_mode(folder.stat(&name)?.st_mode).is_dir() {
                folder.remove_all(&name)?;
            } else {
                folder.remove(&name)?;
            }
        }
        self.remove_empty(name)
    }

    fn unlink(&self, name: &str, flags: AtFlags) -> io::Result<()> {
        let (name, path) = self.named(name)?;
        uninterrupted(|| {
            self.before(&Operation::Remove(&path))?;
            Ok(unlinkat(self.fd(), name, flags)?)
        })
    }
}
