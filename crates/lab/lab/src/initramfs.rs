//! Initial RAM filesystems: a list of entries, written as a cpio archive ("newc").

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use cpio::newc::{Builder, trailer};

use crate::cache;
use crate::error::{LabError, Result};

const FOLDER: u32 = 0o040_755;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_777;
const CHARACTER_DEVICE: u32 = 0o020_600;

/// The type of an archive entry.
#[derive(Clone, Debug)]
enum Entry {
    /// A copy of a file, with these permissions.
    Copy(PathBuf, u32),
    /// A file with this text, with these permissions.
    Text(String, u32),
    /// A symbolic link.
    Link(String),
}

/// Entries of an archive. Folders are added as needed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Initramfs {
    entries: BTreeMap<String, Entry>,
}

impl Initramfs {
    /// Adds a copy of the file at `from`.
    pub(crate) fn copy(&mut self, to: &str, from: &Path, executable: bool) {
        let mode = if executable { 0o755 } else { 0o644 };
        self.entries.insert(relative(to), Entry::Copy(from.to_owned(), mode));
    }

    /// Adds a file with this text.
    pub(crate) fn text(&mut self, to: &str, text: String) {
        self.entries.insert(relative(to), Entry::Text(text, 0o644));
    }

    /// Adds a symbolic link at `to`.
    pub(crate) fn link(&mut self, to: &str, target: &str) {
        self.entries.insert(relative(to), Entry::Link(target.to_owned()));
    }

    /// A name that changes with any content of the archive.
    pub(crate) fn key(&self) -> Result<String> {
        let mut parts = Vec::new();
        for (name, entry) in &self.entries {
            parts.push(name.clone().into_bytes());
            match entry {
                Entry::Copy(from, mode) => {
                    parts.push(mode.to_le_bytes().to_vec());
                    parts.push(fs::read(from).map_err(LabError::io("cannot read", from))?);
                }
                Entry::Text(text, _) | Entry::Link(text) => parts.push(text.clone().into_bytes()),
            }
        }
        Ok(cache::key(parts.iter().map(Vec::as_slice)))
    }

    /// Writes the archive to a file, atomically.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let unfinished = path.with_extension("new");
        let file =
            fs::File::create(&unfinished).map_err(LabError::io("cannot write", &unfinished))?;
        let mut to = BufWriter::with_capacity(1 << 20, file);
        self.archive(&mut to)?;
        to.flush().map_err(LabError::io("cannot write", &unfinished))?;
        fs::rename(&unfinished, path).map_err(LabError::io("cannot write", path))
    }

    fn archive(&self, to: &mut impl Write) -> Result<()> {
        let failed = |name: &str| {
            let path = PathBuf::from(name);
            move |error: io::Error| LabError::io("cannot write to the archive", &path)(error)
        };
        let mut inode = 0;
        let mut builder = |name: &str, mode| {
            inode += 1;
            Builder::new(name).mode(mode).ino(inode).nlink(1)
        };
        for folder in self.folders() {
            put(builder(&folder, FOLDER), &[], to).map_err(failed(&folder))?;
        }
        // The kernel opens it for init.
        let console = builder("dev/console", CHARACTER_DEVICE).rdev_major(5).rdev_minor(1);
        put(console, &[], to).map_err(failed("dev/console"))?;
        for (name, entry) in &self.entries {
            let (mode, bytes) = match entry {
                Entry::Copy(from, mode) => {
                    (FILE | mode, fs::read(from).map_err(LabError::io("cannot read", from))?)
                }
                Entry::Text(text, mode) => (FILE | mode, text.clone().into_bytes()),
                Entry::Link(target) => (LINK, target.clone().into_bytes()),
            };
            put(builder(name, mode), &bytes, to).map_err(failed(name))?;
        }
        trailer(&mut *to).map_err(failed("trailer"))?;
        Ok(())
    }

    /// All folders, parents first.
    fn folders(&self) -> Vec<String> {
        let mut folders: Vec<String> =
            ["dev", "proc", "sys", "tmp", "run", "root", "bin"].map(str::to_owned).into();
        for name in self.entries.keys() {
            let slashes = name.match_indices('/').map(|(at, _)| at);
            folders.extend(slashes.filter_map(|at| Some(name.get(..at)?.to_owned())));
        }
        folders.sort();
        folders.dedup();
        folders
    }
}

fn relative(path: &str) -> String {
    path.trim_start_matches('/').to_owned()
}

fn put(entry: Builder, bytes: &[u8], to: &mut impl Write) -> io::Result<()> {
    let length = u32::try_from(bytes.len())
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a file of 4 GiB or more"))?;
    let mut writer = entry.write(to, length);
    writer.write_all(bytes)?;
    writer.finish()?;
    Ok(())
}
