//! Owners of instances, probes and the top-level buffers: one locked file per process.
//!
//! The file is `/run/hyperscope/PID`, in a folder that only root can enter. The process holds its lock for life, and
//! the kernel releases the lock however the process ends. A process that gets the lock knows that the owner is dead,
//! and no other user can fake an owner or block a cleanup. A process id alone proves nothing: it may belong to another
//! PID namespace, or be reused.

mod left_over;
mod note;

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use os::folder::{Folder, Modes};
use parking_lot::Mutex;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, geteuid, test_kill_process};

use crate::error::{Result, TracefsError};

pub use self::left_over::LeftOver;
use self::note::Note;
pub use self::note::SessionNote;

/// All systems empty this folder at boot, when the kernel's settings are lost as well.
const RUN: &str = "/run";
const FOLDER: &str = "/run/hyperscope";
/// Max time that another process may hold the lock while it checks whether the owner is dead.
const OTHERS_LOOK: Duration = Duration::from_secs(10);

/// This process as an owner; drop removes its file.
#[derive(Debug)]
pub struct Owner {
    folder: Folder,
    name: String,
    file: Mutex<File>,
}

/// This process as an owner, while any part of the process needs it.
static OWN: Mutex<Weak<Owner>> = Mutex::new(Weak::new());

impl Owner {
    /// This process as an owner; all callers share it.
    ///
    /// # Errors
    /// When its file can't be made or locked.
    pub fn this_process() -> Result<Arc<Self>> {
        let mut current = OWN.lock();
        if let Some(owner) = current.upgrade() {
            return Ok(owner);
        }
        let owner = Arc::new(Self::lock(&run_folder()?, std::process::id())?);
        *current = Arc::downgrade(&owner);
        Ok(owner)
    }

    /// [`Owner::this_process`] with the session that it records into: a cleanup moves leftovers there.
    ///
    /// # Errors
    /// As [`Owner::this_process`].
    pub fn of_session(session: SessionNote) -> Result<Arc<Self>> {
        let owner = Self::this_process()?;
        owner.write(&Note::of_this_process(Some(session)))?;
        Ok(owner)
    }

    fn lock(folder: &Folder, pid: u32) -> Result<Self> {
        let name = pid.to_string();
        let path = folder.path().join(&name);
        let failed = || TracefsError::io("lock", &path);
        let end = Instant::now() + OTHERS_LOOK;
        loop {
            let file = folder.read_write(&name).map_err(failed())?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if folder.is_still(&name, &file) => {
                    let owner = Self { folder: folder.clone(), name, file: Mutex::new(file) };
                    owner.write(&Note::of_this_process(None))?;
                    return Ok(owner);
                }
                // The previous owner has removed the file meanwhile.
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) if Instant::now() < end => {
                    thread::sleep(Duration::from_millis(10));
                }
                Err(error) => return Err(failed()(error.into())),
            }
        }
    }

    fn write(&self, note: &Note) -> Result<()> {
        let mut file = self.file.lock();
        let written = file
            .set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .and_then(|_| file.write_all(&note.to_bytes()));
        written.map_err(TracefsError::io("write", &self.folder.path().join(&self.name)))
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // Before the lock is released: otherwise another process takes the file for a leftover.
        let _ = self.folder.remove(&self.name);
    }
}

/// The folder of all owners; it also has the mount point of a process's own tracefs.
///
/// # Errors
/// When the folder can't be made or used.
pub fn run_folder() -> Result<Folder> {
    // An initial RAM filesystem may have no `/run` yet.
    let made = std::fs::create_dir_all(RUN);
    made.map_err(TracefsError::io("make", Path::new(RUN)))?;
    let user = geteuid();
    // A user with the right capabilities may trace without being root; root's folder stays root's.
    let path = if user.is_root() { FOLDER.into() } else { format!("{FOLDER}-{}", user.as_raw()) };
    let folder = Folder::open_or_make(Path::new(&path), Modes::default(), None);
    let (folder, _) = folder.map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied if !user.is_root() => TracefsError::NotAllowed,
        _ => TracefsError::io("use the folder", Path::new(&path))(error),
    })?;
    Ok(folder)
}

/// The session that a live process records into, according to its note; `None` if the process is dead.
pub(crate) fn session_of(pid: u32) -> Option<SessionNote> {
    if is_no_process(pid) {
        return None;
    }
    let mut bytes = Vec::new();
    let file = run_folder().ok()?.read(&pid.to_string()).ok()?;
    file.take(note::MAX_BYTES).read_to_end(&mut bytes).ok()?;
    Note::parse(&bytes).session
}

/// Folders of non-root users who trace with capabilities. Each folder's name includes its user.
#[must_use]
pub fn run_folders_of_others() -> Vec<PathBuf> {
    let Some(begin) = Path::new(FOLDER).file_name().and_then(|name| name.to_str()) else {
        return Vec::new();
    };
    let is_own = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        let user = name.and_then(|name| name.strip_prefix(begin)?.strip_prefix('-'));
        let about = path.symlink_metadata().ok().filter(std::fs::Metadata::is_dir);
        let owner = about.map(|about| about.uid());
        owner.is_some() && user.and_then(|user| user.parse().ok()) == owner
    };
    let entries = Path::new(RUN).read_dir().into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(is_own).collect()
}

/// State of an owner.
#[derive(Debug)]
enum Look {
    /// The owner lives, or another process cleans up after it.
    Lives,
    /// The owner is dead: its locked file, and its note.
    Gone(File, Note),
    /// The owner has no file.
    Unknown,
}

/// Looks up the owner with this process id.
fn look(folder: &Folder, name: &str, how: FlockOperation) -> Look {
    // Only an owner makes its file.
    if !folder.holds(name) {
        return Look::Unknown;
    }
    let Ok(mut file) = folder.read(name) else { return Look::Unknown };
    match flock(&file, how) {
        Ok(()) if folder.is_still(name, &file) => {
            let mut bytes = Vec::new();
            // An unreadable note counts as empty.
            let _ = (&mut file).take(note::MAX_BYTES).read_to_end(&mut bytes);
            Look::Gone(file, Note::parse(&bytes))
        }
        Ok(()) => Look::Unknown,
        Err(_) => Look::Lives,
    }
}

/// Whether a process's leftovers may be removed unread: it is dead, no other process cleans up after it, and they
/// belong to no existing session.
pub(crate) fn is_removable(pid: u32) -> bool {
    let look = run_folder()
        .map(|folder| look(&folder, &pid.to_string(), FlockOperation::NonBlockingLockExclusive));
    match look {
        Ok(Look::Lives) => false,
        Ok(Look::Gone(_, note)) => note.session.is_none(),
        Ok(Look::Unknown) | Err(_) => pid != std::process::id() && is_no_process(pid),
    }
}

/// Removes a dead owner's file, unless another process cleans up after it.
pub(crate) fn forget(pid: u32) {
    let (Ok(folder), name) = (run_folder(), pid.to_string()) else { return };
    if let Look::Gone(..) = look(&folder, &name, FlockOperation::NonBlockingLockExclusive) {
        // A file that stays is found again by the next cleanup, with nothing left to do.
        let _ = folder.remove(&name);
    }
}

/// Whether no process has this id in this namespace.
fn is_no_process(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, Folder) {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path(), Modes::default()).unwrap();
        (place, folder)
    }

    const NOW: FlockOperation = FlockOperation::NonBlockingLockExclusive;

    #[test]
    fn an_owner_lives_as_long_as_it_has_its_lock() {
        let (_place, folder) = folder();
        assert!(matches!(look(&folder, "77", NOW), Look::Unknown));
        let owner = Owner::lock(&folder, 77).unwrap();
        assert!(matches!(look(&folder, "77", NOW), Look::Lives));
        drop(owner);
        assert!(matches!(look(&folder, "77", NOW), Look::Unknown));
    }

    #[test]
    fn what_an_owner_noted_is_there_when_it_is_gone() {
        let (place, folder) = folder();
        let session = SessionNote {
            path: "/a folder\nwith two lines".into(),
            identity: (5, 1 << 40),
            file_mode: 0o640,
            owner: Some((1000, 100)),
        };
        let note = Note { pid: 77, started_ticks: 9, session: Some(session) };
        std::fs::write(place.path().join("77"), note.to_bytes()).unwrap();
        let Look::Gone(_file, read) = look(&folder, "77", NOW) else { panic!("not gone") };
        assert_eq!(read, note);
        // While one process cleans up, all others see the owner as alive.
        assert!(matches!(look(&folder, "77", NOW), Look::Lives));
    }

    #[test]
    fn processes_that_are_there_are_not_gone() {
        assert!(!is_no_process(std::process::id()));
        // Process 1 belongs to another user if this test runs without privileges.
        assert!(!is_no_process(1));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        assert!(!is_no_process(child.id()));
        child.wait().unwrap();
        assert!(is_no_process(child.id()));
    }
}
