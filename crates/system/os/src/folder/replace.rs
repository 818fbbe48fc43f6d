//! Files that are there in full, or as they were.

use std::io::{self, Write};

use rustix::fs::renameat;

use crate::folder::observer::{Operation, uninterrupted};
use crate::folder::open::Folder;

impl Folder {
    /// Writes a new file.
    ///
    /// # Errors
    /// When something of that name is there, or the disk is full.
    pub fn write_new(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.create_new(name)?.write_all(bytes)
    }

    /// Writes a file in place of one that may be there; after a crash there may be none, or a part.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn overwrite(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.remove_if_there(name)?;
        self.write_new(name, bytes)
    }

    /// Writes a file under a temporary name, then renames it: readers find the old file or the new one, even
    /// after a crash.
    ///
    /// # Errors
    /// When it can't be written: the one that was there stays.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let new = format!("{name}.new");
        // A file of a killed program, or one that another user created.
        self.remove_if_there(&new)?;
        let written = self.create_new(&new).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync()
        });
        let replaced = written.and_then(|()| self.rename(&new, name));
        if replaced.is_err() {
            // It does no harm.
            let _ = self.remove(&new);
        }
        replaced
    }

    /// Moves something in it into another folder of the same filesystem, under the same name.
    ///
    /// # Errors
    /// What the disk says.
    pub fn move_to(&self, name: &str, to: &Self) -> io::Result<()> {
        let ((name, from_path), (_, to_path)) = (self.named(name)?, to.named(name)?);
        uninterrupted(|| {
            self.before(&Operation::Rename(&from_path, &to_path))?;
            Ok(renameat(self.fd(), name, to.fd(), name)?)
        })?;
        to.sync().and_then(|()| self.sync())
    }

    /// Gives a file another name, which may be another's, and has that on the disk.
    ///
    /// # Errors
    /// What the disk says.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let ((from, from_path), (to, to_path)) = (self.named(from)?, self.named(to)?);
        uninterrupted(|| {
            self.before(&Operation::Rename(&from_path, &to_path))?;
            Ok(renameat(self.fd(), from, self.fd(), to)?)
        })?;
        self.sync()
    }
}
