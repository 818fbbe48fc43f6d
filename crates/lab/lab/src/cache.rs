//! The lab's folder: cached files, and running labs.
//!
//! ```text
//! packages/KEY/     unpacked Debian packages
//! images/KEY.cpio   initial RAM filesystems
//! snapshots/KEY/    booted labs
//! run/NAME/         a running lab: sockets, consoles, its description
//! ```

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{FlockOperation, flock, statvfs};
use sha2::{Digest, Sha256};

use crate::error::{LabError, Result};

/// All subfolders that the lab makes.
const FOLDERS: [&str; 7] = ["apt", "images", "locks", "packages", "run", "snapshots", "times"];
/// Prefix of files with results of KVM trials.
pub(crate) const ACCELERATOR: &str = "accelerator-";

/// The lab's folder.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

/// Held while a lab or a cache entry is modified; other processes wait or get an error.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Cache {
    /// The folder at a path, or the default: `HYPERSCOPE_LAB_DIR`, else `$XDG_CACHE_HOME/hyperscope/lab`, else
    /// `~/.cache/hyperscope/lab`.
    ///
    /// # Errors
    /// When no folder is given and there is no home.
    pub fn locate(path: Option<PathBuf>) -> Result<Self> {
        let named =
            |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let root = path
            .or_else(|| named("HYPERSCOPE_LAB_DIR"))
            .or_else(|| Some(named("XDG_CACHE_HOME")?.join("hyperscope/lab")))
            .or_else(|| Some(named("HOME")?.join(".cache/hyperscope/lab")));
        let root = root.ok_or_else(|| {
            LabError::missing("a home folder", "set HYPERSCOPE_LAB_DIR to a folder for the lab")
        })?;
        let root = std::path::absolute(&root).map_err(LabError::io("cannot resolve", &root))?;
        Ok(Self { root })
    }

    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A subfolder; made if it does not exist.
    pub(crate) fn folder(&self, name: &str) -> Result<PathBuf> {
        let path = self.root.join(name);
        fs::create_dir_all(&path).map_err(LabError::io("cannot make", &path))?;
        Ok(path)
    }

    /// The folder of a running lab; it may not exist.
    pub(crate) fn run_folder(&self, name: &str) -> PathBuf {
        self.root.join("run").join(name)
    }

    /// Removes only what the lab created: a user may have chosen a folder with other files.
    pub(crate) fn clear(&self) -> Result<()> {
        for name in FOLDERS {
            let path = self.root.join(name);
            gone(fs::remove_dir_all(&path), &path)?;
        }
        let entries = fs::read_dir(&self.root).into_iter().flatten();
        let files = entries
            .filter_map(|entry| entry.ok())
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(ACCELERATOR));
        for file in files {
            gone(fs::remove_file(file.path()), &file.path())?;
        }
        // Fails if the folder has other files.
        let _ = fs::remove_dir(&self.root);
        Ok(())
    }

    /// Waits until the lock of this name is free.
    pub(crate) fn lock(&self, name: &str) -> Result<Lock> {
        let path = self.folder("locks")?.join(name);
        let file = File::create(&path).map_err(LabError::io("cannot make", &path))?;
        flock(&file, FlockOperation::LockExclusive)
            .map_err(|error| LabError::io("cannot lock", &path)(error.into()))?;
        Ok(Lock { _file: file })
    }

    /// Takes a lock if it is free.
    pub(crate) fn try_lock(&self, name: &str) -> Result<Option<Lock>> {
        let path = self.folder("locks")?.join(name);
        let file = File::create(&path).map_err(LabError::io("cannot make", &path))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Lock { _file: file })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(LabError::io("cannot lock", &path)(error.into())),
        }
    }

    /// Checks that enough disk space is free.
    pub(crate) fn need_room(&self, bytes: u64) -> Result<()> {
        let root = &self.root;
        fs::create_dir_all(root).map_err(LabError::io("cannot make", root))?;
        let room =
            statvfs(root).map_err(|error| LabError::io("cannot look at", root)(error.into()))?;
        let free = room.f_bavail.saturating_mul(room.f_frsize);
        if free >= bytes {
            return Ok(());
        }
        Err(LabError::TooLittle {
            what: format!("disk space in {}", root.display()),
            available_mib: free >> 20,
            needed_mib: bytes >> 20,
            mend: "free space with `hyperscope lab clean`, or set HYPERSCOPE_LAB_DIR to another folder",
        })
    }
}

/// Treats a missing file or folder like a removed one.
fn gone(removed: std::io::Result<()>, path: &Path) -> Result<()> {
    match removed {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(LabError::io("cannot remove", path)(error))
        }
        _ => Ok(()),
    }
}

/// Marks a file as just used.
pub(crate) fn used(path: &Path) {
    // After a failure the file is removed sooner.
    let _ = File::options()
        .append(true)
        .open(path)
        .and_then(|file| file.set_modified(SystemTime::now()));
}

/// Removes the least recently used entries beyond a number. `mark` is the file in each entry whose time shows the last
/// use; empty: the entry itself.
pub(crate) fn keep_newest(folder: &Path, mark: &str, count: usize) -> Result<()> {
    let entries = fs::read_dir(folder).map_err(LabError::io("cannot read", folder))?;
    let mut entries: Vec<(SystemTime, PathBuf)> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let marked = if mark.is_empty() { path.clone() } else { path.join(mark) };
            // An entry without a mark is being made.
            Some((fs::metadata(marked).ok()?.modified().ok()?, path))
        })
        .collect();
    entries.sort();
    entries.reverse();
    entries.iter().skip(count).try_for_each(|(_, path)| {
        let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        removed.map_err(LabError::io("cannot remove", path))
    })
}

/// A hash of the parts, as a name for what they define.
pub(crate) fn key<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().iter().take(12).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_was_used_longest_ago_goes_first() {
        let folder = tempfile::tempdir().unwrap();
        for (name, age) in [("a", 30), ("b", 10), ("c", 20)] {
            fs::create_dir(folder.path().join(name)).unwrap();
            let mark = File::create(folder.path().join(name).join("state")).unwrap();
            mark.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
        }
        fs::create_dir(folder.path().join("unfinished")).unwrap();
        used(&folder.path().join("a/state"));
        keep_newest(folder.path(), "state", 2).unwrap();
        let present = ["a", "b", "c", "unfinished"].map(|name| folder.path().join(name).exists());
        assert_eq!(present, [true, true, false, true]);
    }

    #[test]
    fn clearing_leaves_what_the_lab_did_not_make() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::locate(Some(folder.path().to_owned())).unwrap();
        fs::write(cache.folder("snapshots").unwrap().join("ram"), "x").unwrap();
        fs::write(folder.path().join("accelerator-x86_64"), "x").unwrap();
        fs::write(folder.path().join("thesis.tex"), "x").unwrap();
        cache.clear().unwrap();
        let remaining: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(remaining, ["thesis.tex"]);
        fs::remove_file(folder.path().join("thesis.tex")).unwrap();
        cache.clear().unwrap();
        assert!(!folder.path().exists());
        cache.clear().unwrap();
    }

    #[test]
    fn keys_differ_where_parts_do() {
        assert_ne!(key([b"ab".as_slice(), b"c"]), key([b"a".as_slice(), b"bc"]));
        assert_eq!(key([b"a".as_slice()]), key([b"a".as_slice()]));
    }
}
