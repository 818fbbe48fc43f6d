//! Atomic creation and replacement of files.

use std::io::{self, Write};

use rustix::fs::renameat;

use crate::folder::observer::{Operation, uninterrupted};
use crate::folder::open::Folder;

impl Folder {
    /// Writes a new file.
    ///
    /// # Errors
    /// If the name exists, or if the disk is full.
    pub fn write_new(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.create_new(name)?.write_all(bytes)
    }

    /// Writes a file in place of an existing one; after a crash, it can be missing or incomplete.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn overwrite(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.remove_if_there(name)?;
        self.write_new(name, bytes)
    }

    /// Writes a file under a temporary name, then renames it: readers find the old file or the new
    /// one, even after a crash.
    ///
    /// # Errors
    /// If it cannot be written; the old file then remains.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let new = format!("{name}.new");
        // A leftover of a killed program, or a file that another user created.
        self.remove_if_there(&new)?;
        let written = self.create_new(&new).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync()
        });
        let replaced = written.and_then(|()| self.rename(&new, name));
        if replaced.is_err() {
            // A leftover does no harm.
            let _ = self.remove(&new);
        }
        replaced
    }

    /// Moves an entry to another folder of the same file system, under the same name.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn move_to(&self, name: &str, to: &Self) -> io::Result<()> {
        let ((name, from_path), (_, to_path)) = (self.named(name)?, to.named(name)?);
        uninterrupted(|| {
            self.before(&Operation::Rename(&from_path, &to_path))?;
            Ok(renameat(self.fd(), name, to.fd(), name)?)
        })?;
        to.sync().and_then(|()| self.sync())
    }

    /// Renames a file, replaces an existing one, and flushes the change to the disk.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let ((from, from_path), (to, to_path)) = (self.named(from)?, self.named(to)?);
        uninterrupted(|| {
            self.before(&Operation::Rename(&from_path, &to_path))?;
            Ok(renameat(self.fd(), from, self.fd(), to)?)
        })?;
        self.sync()
    }
}
