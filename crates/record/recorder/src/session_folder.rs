//! The folder of a session: it contains all files of the session, and one recorder at a time uses it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use os::folder::{Folder, Made, Modes, Observer};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::geteuid;
use tracefs::{Owner, SessionNote};

use crate::error::{RecordError, Result};
use crate::flight_sessions;
use crate::hypercalls;
use crate::nanoseconds::unix_ns;

/// The file with the host's recording.
pub(crate) const HOST_FILE: &str = "host.dat";
/// The folder with the host's pages.
pub(crate) const PAGES_FOLDER: &str = "host.pages";
/// Locked by the recorder that uses the folder: the kernel releases the lock however the process ends.
const MARKER: &str = ".recorder";

/// Max sessions of one name in a folder.
const MAX_NUMBERED: u32 = 100_000;

/// Max time for the kernel to release the lock of a killed process: it ends its threads and closes its files one after
/// another.
const KERNEL_LETS_GO: Duration = Duration::from_secs(2);

/// A session's folder, locked by this recorder. Clones share the state.
#[derive(Clone, Debug)]
pub struct SessionFolder(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    folder: Folder,
    made: Made,
    /// The user and group that get it at the end.
    owner: Option<(u32, u32)>,
    marker: File,
}

impl SessionFolder {
    /// Makes a new folder for a session.
    ///
    /// # Errors
    /// When the name is taken, or the folder can't be made.
    pub(crate) fn make(path: &Path, modes: Modes) -> Result<Self> {
        let folder = Folder::make(path, modes).map_err(RecordError::io("make", path))?;
        let session = Self::lock(folder, Made::New, invoking_user())?;
        session.name_holder()?;
        Ok(session)
    }

    /// Makes a folder for a session without a given name: `STEM.hscope`, or the first free `STEM-N.hscope`.
    ///
    /// # Errors
    /// When it can't be made.
    pub fn make_numbered(stem: &str, modes: Modes) -> Result<Self> {
        for number in 0..MAX_NUMBERED {
            let name = match number {
                0 => format!("{stem}.hscope"),
                number => format!("{stem}-{number}.hscope"),
            };
            match Self::make(Path::new(&name), modes) {
                Err(RecordError::Io { source, .. })
                    if source.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made,
            }
        }
        Err(RecordError::Usage(format!(
            "{MAX_NUMBERED} sessions with the name {stem} already exist here: name a folder with -o"
        )))
    }

    /// Locks a folder for a new session; makes it if it does not exist. Writes nothing if that fails.
    ///
    /// # Errors
    /// When it belongs to another user or others can write to it, another recorder uses it, or it contains a recording.
    pub fn take(path: &Path, modes: Modes) -> Result<Self> {
        Self::take_observed(path, modes, None)
    }

    /// [`SessionFolder::take`] that shows each operation to a test before it is executed.
    ///
    /// # Errors
    /// As [`SessionFolder::take`].
    pub fn take_observed(
        path: &Path,
        modes: Modes,
        observer: Option<Arc<dyn Observer>>,
    ) -> Result<Self> {
        let opened = Folder::open_or_make(path, modes, observer);
        let (folder, made) = opened.map_err(RecordError::io("use the folder", path))?;
        // A complete recording has no marker, and must not get one.
        if !folder.holds(MARKER) {
            refuse_recording(&folder)?;
        }
        // An existing folder stays its owner's.
        let owner = invoking_user().filter(|_| made == Made::New);
        let session = Self::lock(folder, made, owner)?;
        refuse_recording(&session)?;
        session.name_holder()?;
        Ok(session)
    }

    /// Locks a folder for a flight recorder's sessions; makes it if it does not exist. Pages of an earlier recorder
    /// that was killed become a session, whose folder is returned.
    ///
    /// # Errors
    /// As [`SessionFolder::take`].
    pub fn take_for_flight(path: &Path, modes: Modes) -> Result<(Self, Option<PathBuf>)> {
        let opened = Folder::open_or_make(path, modes, None);
        let (folder, made) = opened.map_err(RecordError::io("use the folder", path))?;
        if let Some(file) = [HOST_FILE, "session.json"].into_iter().find(|name| folder.holds(name))
        {
            return Err(RecordError::HoldsRecording { path: path.into(), file });
        }
        let owner = invoking_user().filter(|_| made == Made::New);
        let session = Self::lock(folder, made, owner)?;
        let earlier_session =
            session.holds(PAGES_FOLDER).then(|| session.keep_left()).transpose()?;
        session.name_holder()?;
        Ok((session, earlier_session))
    }

    /// Makes a session of leftover pages.
    fn keep_left(&self) -> Result<PathBuf> {
        let name = flight_sessions::name(self, unix_ns());
        let path = self.path().join(&name);
        let result = self.subfolder(&name).and_then(|session| {
            let is_left = |name: &String| name == PAGES_FOLDER || is_guests_pages(name);
            let mut names = self.names()?.into_iter().filter(is_left);
            names.try_for_each(|name| self.move_to(&name, &session))
        });
        result.map_err(RecordError::io("keep what is left in", &path))?;
        Ok(path)
    }

    /// Locks the folder of a dead recorder, to finish its session.
    ///
    /// # Errors
    /// When it is gone, belongs to another user, or another recorder uses it.
    pub(crate) fn take_over(note: &SessionNote) -> Result<Self> {
        let (path, modes) = (&*note.path, Modes::of_files(note.file_mode).unwrap_or_default());
        let folder = Folder::open(path, modes).map_err(RecordError::io("use the folder", path))?;
        let identity = folder.identity().map_err(RecordError::io("use the folder", path))?;
        if identity != note.identity {
            let source = io::Error::other("it is not the recorder's folder");
            return Err(RecordError::io("use the folder", path)(source));
        }
        let end = Instant::now() + KERNEL_LETS_GO;
        loop {
            match Self::lock(folder.clone(), Made::Before, None) {
                Err(RecordError::SessionTaken { .. }) if Instant::now() < end => {
                    thread::sleep(Duration::from_millis(10));
                }
                result => return result,
            }
        }
    }

    fn lock(folder: Folder, made: Made, owner: Option<(u32, u32)>) -> Result<Self> {
        let path = folder.path().join(MARKER);
        let failed = || RecordError::io("lock", &path);
        loop {
            let mut marker = folder.read_write(MARKER).map_err(failed())?;
            match flock(&marker, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => {
                    let holder = holder(&mut marker);
                    return Err(RecordError::SessionTaken { path: folder.path().into(), holder });
                }
                Err(error) => return Err(failed()(error.into())),
            }
            // Another recorder may have removed it between open and lock.
            if folder.is_still(MARKER, &marker) {
                return Ok(Self(Arc::new(Inner { folder, made, owner, marker })));
            }
        }
    }

    /// Notes the process id of the holder.
    fn name_holder(&self) -> Result<()> {
        let mut marker = &self.0.marker;
        let named = marker
            .set_len(0)
            .and_then(|()| marker.seek(SeekFrom::Start(0)))
            .and_then(|_| writeln!(marker, "{}", std::process::id()));
        named.map_err(RecordError::io("write", &self.path().join(MARKER)))
    }

    /// Whether another user becomes its owner at the end.
    pub(crate) fn is_given_away(&self) -> bool {
        self.0.owner.is_some()
    }

    /// Releases it without a recording: removes it if it was made here and is empty.
    pub fn abandon(&self) {
        let _ = self.remove(MARKER);
        if self.0.made == Made::New && self.is_at_its_path() {
            let _ = std::fs::remove_dir(self.path());
        }
    }

    /// Releases it: other recorders may use it.
    pub fn give_back(&self) {
        // If it can't be removed, the lock ends with this process.
        let _ = self.remove(MARKER);
    }

    /// Ends the use of the folder. If this program was run by `sudo`, the folder then belongs to the user who ran it,
    /// unless the folder existed before.
    ///
    /// # Errors
    /// When it can't be given away.
    pub fn end(&self) -> Result<()> {
        self.give_back();
        let given = self.0.owner.map_or(Ok(()), |(user, group)| self.give_to(user, group));
        given.map_err(RecordError::io("give away", self.path()))
    }

    /// Notes that this process records into the folder: if it is killed, the cleanup uses this note. Valid until the
    /// last one of these owners is dropped.
    ///
    /// # Errors
    /// When it can't be noted.
    pub fn claim(&self) -> Result<Arc<Owner>> {
        Ok(Owner::of_session(self.note()?)?)
    }

    fn note(&self) -> Result<SessionNote> {
        let failed = || RecordError::io("use the folder", self.path());
        Ok(SessionNote {
            path: std::path::absolute(self.path()).map_err(failed())?,
            identity: self.identity().map_err(failed())?,
            file_mode: self.modes().file_bits(),
            owner: self.0.owner,
        })
    }
}

impl Deref for SessionFolder {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.0.folder
    }
}

/// The holder's note in a folder.
fn holder(marker: &mut File) -> String {
    let mut text = String::new();
    // Shows only a number, nothing else that another program may have written.
    let _ = marker.take(16).read_to_string(&mut text);
    text.trim()
        .parse::<u32>()
        .map_or_else(|_| "another process".into(), |pid| format!("process {pid}"))
}

/// The user who ran `sudo`, if this process runs under it.
pub(crate) fn invoking_user() -> Option<(u32, u32)> {
    let number = |name| std::env::var(name).ok()?.parse::<u32>().ok();
    let user = number("SUDO_UID").filter(|_| geteuid().is_root())?;
    Some((user, number("SUDO_GID")?))
}

fn is_guests_pages(name: &str) -> bool {
    name.starts_with("guest-") && name.ends_with(".pages")
}

fn refuse_recording(folder: &Folder) -> Result<()> {
    let files = [HOST_FILE, PAGES_FOLDER, hypercalls::FILE, "session.json"];
    match files.into_iter().find(|name| folder.holds(name)) {
        Some(file) => Err(RecordError::HoldsRecording { path: folder.path().into(), file }),
        None => Ok(()),
    }
}
