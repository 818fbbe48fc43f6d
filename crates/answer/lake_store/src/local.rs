//! A lake in a local folder.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;
use rustix::fs::FlockOperation;

use super::places::ROOT;
use super::storage::{Entry, Storage};

/// The folder of incomplete files. Query engines skip folders whose names begin with `_`.
const UNFINISHED: &str = "_unfinished";
/// Locked by the process that changes the lake.
const LOCK: &str = "_lock";
/// Size of the write buffer.
const BUFFER_BYTES: usize = 1 << 18;
/// Max files of a lake.
const MAX_FILES: usize = 1 << 22;
/// Max depth of nested folders.
const MAX_DEPTH: usize = 8;

/// A lake in a folder.
#[derive(Debug)]
pub struct LocalFolder {
    root: PathBuf,
    number: AtomicU64,
    fault: Fault,
    /// The lock, held while this exists.
    _lock: Option<File>,
}

/// The first write error: writers of tables reduce it to a text.
#[derive(Clone, Debug, Default)]
struct Fault(Arc<Mutex<Option<String>>>);

impl Fault {
    /// Stores the first error.
    fn note<T>(&self, done: io::Result<T>) -> io::Result<T> {
        done.inspect_err(|error| {
            let mut first = self.0.lock();
            first.get_or_insert_with(|| error.to_string());
        })
    }
}

/// The path of an incomplete file; dropping it removes the file unless it was moved.
#[derive(Debug)]
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        // It was renamed or removed before, or it stays for gc.
        let _ = fs::remove_file(&self.0);
    }
}

/// A file that is being written, not yet in its place.
#[derive(Debug)]
pub struct UnfinishedFile {
    file: BufWriter<File>,
    place: Unfinished,
    fault: Fault,
}

impl Write for UnfinishedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.fault.note(self.file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.fault.note(self.file.flush())
    }
}

impl LocalFolder {
    /// Opens a lake to read only.
    ///
    /// # Errors
    /// When the folder is no lake.
    pub fn open(root: &Path) -> io::Result<Self> {
        if !root.join(ROOT).is_dir() {
            let why = match other_version(root) {
                Some(other) => of_other_version(root, &other),
                None => format!("{} is not a lake: it has no folder {ROOT}", root.display()),
            };
            return Err(io::Error::new(io::ErrorKind::NotFound, why));
        }
        Ok(Self::new(root, None))
    }

    /// Opens a lake to change it; creates it if there is none. Other processes wait until this one is done or
    /// has died.
    ///
    /// # Errors
    /// When it can't be made or locked, or the folder holds anything but a lake of this version.
    pub fn change(root: &Path) -> io::Result<Self> {
        refuse_others(root)?;
        fs::create_dir_all(root.join(ROOT).join(UNFINISHED))?;
        let lock = File::create(root.join(ROOT).join(LOCK))?;
        rustix::fs::flock(&lock, FlockOperation::LockExclusive)?;
        Ok(Self::new(root, Some(lock)))
    }

    fn new(root: &Path, lock: Option<File>) -> Self {
        let (root, number, fault) = (root.to_owned(), AtomicU64::new(0), Fault::default());
        Self { root, number, fault, _lock: lock }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn unfinished_folder(&self) -> PathBuf {
        self.root.join(ROOT).join(UNFINISHED)
    }

    fn put_whole(&self, file: UnfinishedFile, name: &str) -> io::Result<()> {
        let UnfinishedFile { file, place: unfinished_place, .. } = file;
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        self.rename_to(&unfinished_place.0, name)
    }

    fn move_whole(&self, from: &str, to: &str) -> io::Result<()> {
        let from = self.at(from);
        self.rename_to(&from, to)?;
        // Syncs the old name's folder as well, so that the old name does not return after a crash.
        File::open(from.parent().unwrap_or(&self.root))?.sync_all()
    }

    fn rename_to(&self, from: &Path, name: &str) -> io::Result<()> {
        let place = self.at(name);
        let folder = place.parent().unwrap_or(&self.root);
        fs::create_dir_all(folder)?;
        fs::rename(from, &place)?;
        // The name is durable once its folder is synced.
        File::open(folder)?.sync_all()
    }
}

/// The folder of a lake of another version.
fn other_version(root: &Path) -> Option<String> {
    let is_version = |name: &String| {
        name.strip_prefix('v').is_some_and(|rest| rest.parse::<u32>().is_ok()) && name != ROOT
    };
    names(root).find(is_version)
}

fn of_other_version(root: &Path, other: &str) -> String {
    format!("{} is a lake of version {other}; this program reads and writes {ROOT}", root.display())
}

/// Names in a folder; empty if there is none.
fn names(folder: &Path) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned())
}

/// Refuses a folder with other content, such as a recording: the lake would be mixed with it.
fn refuse_others(root: &Path) -> io::Result<()> {
    // A new file system has the first folder; another run may have made the second one meanwhile.
    let is_other = |name: &String| !name.starts_with('.') && name != "lost+found" && name != ROOT;
    if root.join(ROOT).is_dir() || !names(root).any(|name| is_other(&name)) {
        return Ok(());
    }
    let why = match other_version(root) {
        Some(other) => of_other_version(root, &other),
        None => format!(
            "{} is not a lake and contains other files; give a new or an empty folder",
            root.display()
        ),
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, why))
}

/// All files below a folder, except unfinished ones.
fn walk(folder: &Path, name: &str, depth: usize, found: &mut Vec<Entry>) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let file_name = entry.file_name();
        let Some(file_name) =
            file_name.to_str().filter(|file_name| !file_name.starts_with(['_', '.']))
        else {
            continue;
        };
        let name = format!("{name}/{file_name}");
        // Another run replaced it meanwhile.
        let Ok(info) = entry.metadata() else { continue };
        if info.is_dir() && depth < MAX_DEPTH {
            walk(&entry.path(), &name, depth + 1, found)?;
        } else if info.is_file() {
            let (bytes, written) = (info.len(), info.modified()?);
            found.push(Entry { name, bytes, written, version: None });
        }
        if found.len() > MAX_FILES {
            return Err(io::Error::other("the lake has more files than allowed"));
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
        let file = self.fault.note(File::create(&path))?;
        let file = BufWriter::with_capacity(BUFFER_BYTES, file);
        Ok(UnfinishedFile { file, place: Unfinished(path), fault: self.fault.clone() })
    }

    fn put(&self, file: UnfinishedFile, name: &str) -> io::Result<()> {
        self.fault.note(self.put_whole(file, name))
    }

    /// The lock prevents concurrent changes.
    fn replace(&self, file: UnfinishedFile, name: &str, _: Option<&Entry>) -> io::Result<()> {
        self.put(file, name)
    }

    fn rename(&self, from: &Entry, to: &str) -> io::Result<Option<Entry>> {
        self.fault.note(self.move_whole(&from.name, to))?;
        Ok(Some(Entry { name: to.to_owned(), ..from.clone() }))
    }

    fn give_up(&self, file: UnfinishedFile) -> io::Result<()> {
        fs::remove_file(&file.place.0)
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
        let mut found = Vec::new();
        walk(&self.at(folder), folder, 0, &mut found)?;
        found.sort();
        Ok(found)
    }

    fn unfinished(&self) -> io::Result<Vec<Entry>> {
        let mut found = Vec::new();
        walk(&self.unfinished_folder(), &format!("{ROOT}/{UNFINISHED}"), MAX_DEPTH, &mut found)?;
        found.sort();
        Ok(found)
    }

    fn open(&self, files: &[&Entry]) -> io::Result<Vec<File>> {
        files.iter().map(|file| File::open(self.at(&file.name))).collect()
    }

    fn remove(&self, files: &[&str]) -> io::Result<()> {
        let remove = |name| match fs::remove_file(self.at(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
        files.iter().copied().try_for_each(remove)
    }

    fn write_fault(&self) -> Option<String> {
        self.fault.0.lock().clone()
    }
}
