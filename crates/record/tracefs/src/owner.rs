//! Who has instances, probes and the kernel's own buffers: a locked file for each process that does.
//!
//! The file is `/run/hyperscope/PID`, in a folder that only root can enter. Its lock is held as long
//! as the process lives, and the kernel takes it back however that ends: whoever gets the lock knows
//! that the owner is gone, and nobody else can pretend to be one or hold one up. A process id proves
//! nothing: it may be that of another namespace, or be used again.

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

/// What all systems empty when they boot, as the kernel forgets what was set then.
const RUN: &str = "/run";
const FOLDER: &str = "/run/hyperscope";
/// How long another process may take to look whether the owner of a process id is gone.
const OTHERS_LOOK: Duration = Duration::from_secs(10);

/// This process as an owner; its file goes when this is dropped.
#[derive(Debug)]
pub struct Owner {
    folder: Folder,
    name: String,
    file: Mutex<File>,
}

/// The one that this process is, as long as somebody in it needs one.
static OWN: Mutex<Weak<Owner>> = Mutex::new(Weak::new());

impl Owner {
    /// This process as an owner: the same one for all who ask.
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

    /// The same, with the session that it records into: what is left of it belongs there.
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
                // Whoever had it has removed it meanwhile.
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
        // Before the lock goes, so that nobody takes it for one that was left.
        let _ = self.folder.remove(&self.name);
    }
}

/// The folder with all owners; what is mounted for one process is in it, too.
///
/// # Errors
/// When it can't be made or used.
pub fn run_folder() -> Result<Folder> {
    // An initial RAM filesystem may have none yet.
    let made = std::fs::create_dir_all(RUN);
    made.map_err(TracefsError::io("make", Path::new(RUN)))?;
    let user = geteuid();
    // Whoever has the right capabilities may trace without being root; root's folder stays root's.
    let path = if user.is_root() { FOLDER.into() } else { format!("{FOLDER}-{}", user.as_raw()) };
    let folder = Folder::open_or_make(Path::new(&path), Modes::default(), None);
    let (folder, _) = folder.map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied if !user.is_root() => TracefsError::NotAllowed,
        _ => TracefsError::io("use the folder", Path::new(&path))(error),
    })?;
    Ok(folder)
}

/// The session that a process records into, as it says itself; none where it lives no more.
pub(crate) fn session_of(pid: u32) -> Option<SessionNote> {
    if is_no_process(pid) {
        return None;
    }
    let mut bytes = Vec::new();
    let file = run_folder().ok()?.read(&pid.to_string()).ok()?;
    file.take(note::MAX_BYTES).read_to_end(&mut bytes).ok()?;
    Note::parse(&bytes).session
}

/// Folders of users other than root who trace by capabilities, each of which belongs to the user in its name.
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

/// What is known of an owner.
#[derive(Debug)]
enum Look {
    /// It lives, or somebody finishes what it left.
    Lives,
    /// It is gone: its file, locked, and what it says.
    Gone(File, Note),
    /// It has no file.
    Unknown,
}

/// Looks for the owner with this process id.
fn look(folder: &Folder, name: &str, how: FlockOperation) -> Look {
    // A file is only made by who owns it.
    if !folder.holds(name) {
        return Look::Unknown;
    }
    let Ok(mut file) = folder.read(name) else { return Look::Unknown };
    match flock(&file, how) {
        Ok(()) if folder.is_still(name, &file) => {
            let mut bytes = Vec::new();
            // What can't be read says nothing.
            let _ = (&mut file).take(note::MAX_BYTES).read_to_end(&mut bytes);
            Look::Gone(file, Note::parse(&bytes))
        }
        Ok(()) => Look::Unknown,
        Err(_) => Look::Lives,
    }
}

/// Whether what a process has may be removed unread: it is gone, nobody finishes what it left, and
/// there is no session that this belongs to.
pub(crate) fn is_removable(pid: u32) -> bool {
    let look = run_folder()
        .map(|folder| look(&folder, &pid.to_string(), FlockOperation::NonBlockingLockExclusive));
    match look {
        Ok(Look::Lives) => false,
        Ok(Look::Gone(_, note)) => note.session.is_none(),
        Ok(Look::Unknown) | Err(_) => pid != std::process::id() && is_no_process(pid),
    }
}

/// Removes the file of an owner that is gone, where nobody else finishes what it left.
pub(crate) fn forget(pid: u32) {
    let (Ok(folder), name) = (run_folder(), pid.to_string()) else { return };
    if let Look::Gone(..) = look(&folder, &name, FlockOperation::NonBlockingLockExclusive) {
        // What can't be removed is found again, and has nothing left then.
        let _ = folder.remove(&name);
    }
}

/// Whether there is no process with this number here.
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
        // While it is finished by one, it lives for all others.
        assert!(matches!(look(&folder, "77", NOW), Look::Lives));
    }

    #[test]
    fn processes_that_are_there_are_not_gone() {
        assert!(!is_no_process(std::process::id()));
        // The first process is another user's, for whoever runs this without privileges.
        assert!(!is_no_process(1));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        assert!(!is_no_process(child.id()));
        child.wait().unwrap();
        assert!(is_no_process(child.id()));
    }
}
