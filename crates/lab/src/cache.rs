//! The lab's folder: everything it keeps between runs, and the running labs.
//!
//! ```text
//! packages/KEY/     unpacked Debian packages
//! images/KEY.cpio   initial RAM filesystems
//! snapshots/KEY/    booted labs
//! run/NAME/         a running lab: sockets, consoles, its description
//! ```

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock, statvfs};
use sha2::{Digest, Sha256};

use crate::error::{LabError, Result};

/// The lab's folder.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

/// Held while a lab, or something kept, is changed; other processes wait or are told.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Cache {
    /// The folder at a path, or where the user's caches are: `HYPERSCOPE_LAB_DIR`, else
    /// `$XDG_CACHE_HOME/hyperscope/lab`, else `~/.cache/hyperscope/lab`.
    ///
    /// # Errors
    /// When no folder is named and there is no home.
    pub fn locate(path: Option<PathBuf>) -> Result<Self> {
        let named =
            |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let root = path
            .or_else(|| named("HYPERSCOPE_LAB_DIR"))
            .or_else(|| Some(named("XDG_CACHE_HOME")?.join("hyperscope/lab")))
            .or_else(|| Some(named("HOME")?.join(".cache/hyperscope/lab")));
        let root = root.ok_or_else(|| {
            LabError::missing("a home folder", "name the lab's folder in HYPERSCOPE_LAB_DIR")
        })?;
        let root = std::path::absolute(&root).map_err(LabError::io("cannot resolve", &root))?;
        Ok(Self { root })
    }

    /// Where it is.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A folder in it, made if need be.
    pub(crate) fn folder(&self, name: &str) -> Result<PathBuf> {
        let path = self.root.join(name);
        fs::create_dir_all(&path).map_err(LabError::io("cannot make", &path))?;
        Ok(path)
    }

    /// The folder of a running lab; it may not be there.
    pub(crate) fn run_folder(&self, name: &str) -> PathBuf {
        self.root.join("run").join(name)
    }

    /// Waits until nobody else holds the lock of this name.
    pub(crate) fn lock(&self, name: &str) -> Result<Lock> {
        let path = self.folder("locks")?.join(name);
        let file = File::create(&path).map_err(LabError::io("cannot make", &path))?;
        flock(&file, FlockOperation::LockExclusive)
            .map_err(|error| LabError::io("cannot lock", &path)(error.into()))?;
        Ok(Lock { _file: file })
    }

    /// Takes a lock unless somebody else holds it.
    pub(crate) fn try_lock(&self, name: &str) -> Result<Option<Lock>> {
        let path = self.folder("locks")?.join(name);
        let file = File::create(&path).map_err(LabError::io("cannot make", &path))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Lock { _file: file })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(LabError::io("cannot lock", &path)(error.into())),
        }
    }

    /// Checks that so much can be written.
    pub(crate) fn need_room(&self, bytes: u64) -> Result<()> {
        let root = self.folder("")?;
        let room =
            statvfs(&root).map_err(|error| LabError::io("cannot look at", &root)(error.into()))?;
        let free = room.f_bavail.saturating_mul(room.f_frsize);
        if free >= bytes {
            return Ok(());
        }
        let what = format!(
            "disk space: {} MiB are free in {}, {} MiB are needed; room",
            free >> 20,
            root.display(),
            bytes >> 20
        );
        Err(LabError::missing(
            what,
            "`hyperscope lab clean` removes what is kept, HYPERSCOPE_LAB_DIR names another folder",
        ))
    }
}

/// A name for something that is what these parts are.
pub(crate) fn key<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().iter().take(12).map(|byte| format!("{byte:02x}")).collect()
}
