//! A lake in a folder of this machine.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustix::fs::FlockOperation;

use super::places::ROOT;
use super::storage::{Entry, Storage};

/// Where files are until they are complete. Engines look into no folder of such a name.
const UNFINISHED: &str = "_unfinished";
/// Held by whoever changes the lake.
const LOCK: &str = "_lock";
/// Bytes gathered before they are written.
const BUFFER_BYTES: usize = 1 << 18;
/// Files of a lake that are looked at.
const MOST_FILES: usize = 1 << 22;
/// Folders that lie within each other.
const MOST_DEPTH: usize = 8;

/// A folder.
#[derive(Debug)]
pub struct LocalFolder {
    root: PathBuf,
    number: AtomicU64,
    /// Held as long as this lives.
    _lock: Option<File>,
}

/// A file that is not in its place yet.
#[derive(Debug)]
pub struct UnfinishedFile {
    file: BufWriter<File>,
    path: PathBuf,
}

impl Write for UnfinishedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl LocalFolder {
    /// A lake that is only read.
    ///
    /// # Errors
    /// When it is no lake.
    pub fn open(root: &Path) -> io::Result<Self> {
        if !root.join(ROOT).is_dir() {
            let why = format!("{} is no lake: it has no folder {ROOT}", root.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, why));
        }
        Ok(Self { root: root.to_owned(), number: AtomicU64::new(0), _lock: None })
    }

    /// A lake to change, made where there is none. Others wait until it is done, or this process is gone.
    ///
    /// # Errors
    /// When it can't be made or locked.
    pub fn change(root: &Path) -> io::Result<Self> {
        fs::create_dir_all(root.join(ROOT).join(UNFINISHED))?;
        let lock = File::create(root.join(ROOT).join(LOCK))?;
        rustix::fs::flock(&lock, FlockOperation::LockExclusive)?;
        Ok(Self { root: root.to_owned(), number: AtomicU64::new(0), _lock: Some(lock) })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn unfinished_folder(&self) -> PathBuf {
        self.root.join(ROOT).join(UNFINISHED)
    }
}

/// All files below a folder; unfinished ones are not part of a lake.
fn walk(folder: &Path, name: &str, depth: usize, found: &mut Vec<Entry>) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let own = entry.file_name();
        let Some(own) = own.to_str().filter(|own| !own.starts_with(['_', '.'])) else { continue };
        let name = format!("{name}/{own}");
        // Gone meanwhile: another run replaced it.
        let Ok(info) = entry.metadata() else { continue };
        if info.is_dir() && depth < MOST_DEPTH {
            walk(&entry.path(), &name, depth + 1, found)?;
        } else if info.is_file() {
            found.push(Entry { name, bytes: info.len(), written: info.modified()? });
        }
        if found.len() > MOST_FILES {
            return Err(io::Error::other("more files than a lake can have"));
        }
    }
    Ok(())
}

impl Storage for LocalFolder {
    type Unfinished = UnfinishedFile;
    type Read = File;

    fn begin(&self) -> io::Result<UnfinishedFile> {
        let number = self.number.fetch_add(1, Relaxed);
        let path = self.unfinished_folder().join(format!("{}-{number}", std::process::id()));
        let file = File::create(&path)?;
        Ok(UnfinishedFile { file: BufWriter::with_capacity(BUFFER_BYTES, file), path })
    }

    fn put(&self, file: UnfinishedFile, name: &str) -> io::Result<()> {
        let UnfinishedFile { file, path } = file;
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        let place = self.at(name);
        let folder = place.parent().unwrap_or(&self.root);
        fs::create_dir_all(folder)?;
        fs::rename(&path, &place)?;
        // The name is there for good once its folder is.
        File::open(folder)?.sync_all()
    }

    fn give_up(&self, file: UnfinishedFile) -> io::Result<()> {
        fs::remove_file(file.path)
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
        let mut found = Vec::new();
        walk(&self.at(folder), folder, 0, &mut found)?;
        found.sort();
        Ok(found)
    }

    fn unfinished(&self) -> io::Result<Vec<Entry>> {
        let mut found = Vec::new();
        walk(&self.unfinished_folder(), &format!("{ROOT}/{UNFINISHED}"), MOST_DEPTH, &mut found)?;
        found.sort();
        Ok(found)
    }

    fn open(&self, name: &str) -> io::Result<File> {
        File::open(self.at(name))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.at(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}
