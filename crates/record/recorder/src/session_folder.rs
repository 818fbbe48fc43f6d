//! The folder of a session: one recorder has it at a time, and all that a session writes is in it.

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
/// Locked by the recorder that has the folder: the kernel gives the lock back however it ends.
const MARKER: &str = ".recorder";

/// Sessions of one name in a folder, at most.
const MAX_NUMBERED: u32 = 100_000;

/// How long the kernel may take to let go of the lock of a process that is killed: its threads and
/// files go one after the other.
const KERNEL_LETS_GO: Duration = Duration::from_secs(2);

/// A session's folder that this recorder has for itself. Clones are the same one.
#[derive(Clone, Debug)]
pub struct SessionFolder(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    folder: Folder,
    made: Made,
    /// Who gets it at the end.
    owner: Option<(u32, u32)>,
    marker: File,
}

impl SessionFolder {
    /// Takes a new folder for a session.
    ///
    /// # Errors
    /// When something of that name is there, or it can't be made.
    pub(crate) fn make(path: &Path, modes: Modes) -> Result<Self> {
        let folder = Folder::make(path, modes).map_err(RecordError::io("make", path))?;
        let session = Self::lock(folder, Made::New, invoking_user())?;
        session.name_holder()?;
        Ok(session)
    }

    /// Creates a folder for a session without a given name: `STEM.hscope`, or if that exists
    /// `STEM-1.hscope`, or the next number that is free.
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

    /// Takes a folder for a new session, and makes it where there is none. Nothing is written where
    /// that is refused.
    ///
    /// # Errors
    /// When it belongs to another user or can be written by others, another recorder has it, or it
    /// holds a recording.
    pub fn take(path: &Path, modes: Modes) -> Result<Self> {
        Self::take_observed(path, modes, None)
    }

    /// The same, with each operation in it shown to a test before it is done.
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
        // A recording that is complete has no marker, and is not to get one.
        if !folder.holds(MARKER) {
            refuse_recording(&folder)?;
        }
        // What was there before belongs to whoever made it.
        let owner = invoking_user().filter(|_| made == Made::New);
        let session = Self::lock(folder, made, owner)?;
        refuse_recording(&session)?;
        session.name_holder()?;
        Ok(session)
    }

    /// Takes a folder for sessions that a flight recorder dumps, and makes it where there is none. What an
    /// earlier one kept there that was killed becomes a session: its folder.
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

    /// Makes a session of pages that are left here.
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

    /// Takes the folder of a recorder that is gone, to finish what is in it.
    ///
    /// # Errors
    /// When it is not there any more, or not this user's own, or another recorder has it.
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
            // Another recorder may have removed it between being opened and being locked.
            if folder.is_still(MARKER, &marker) {
                return Ok(Self(Arc::new(Inner { folder, made, owner, marker })));
            }
        }
    }

    /// Names its holder.
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

    /// Gives it back without a recording: what was made here goes if nothing else is in it.
    pub fn abandon(&self) {
        let _ = self.remove(MARKER);
        if self.0.made == Made::New && self.is_at_its_path() {
            let _ = std::fs::remove_dir(self.path());
        }
    }

    /// Gives it back: others may take what is left in it.
    pub fn give_back(&self) {
        // Where it can't be removed the lock goes with this process.
        let _ = self.remove(MARKER);
    }

    /// Ends the work in it. Where this program was run by `sudo`, the folder belongs to whoever ran
    /// that from then on, unless it was there before.
    ///
    /// # Errors
    /// When it can't be given away.
    pub fn end(&self) -> Result<()> {
        self.give_back();
        let given = self.0.owner.map_or(Ok(()), |(user, group)| self.give_to(user, group));
        given.map_err(RecordError::io("give away", self.path()))
    }

    /// Notes that this process records into it: whoever finishes what it leaves if it is killed knows
    /// by that where it belongs. That holds until the last one of these is dropped.
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

/// What the recorder that has a folder says of itself there.
fn holder(marker: &mut File) -> String {
    let mut text = String::new();
    // It is a number; whatever else somebody put there is not shown.
    let _ = marker.take(16).read_to_string(&mut text);
    text.trim()
        .parse::<u32>()
        .map_or_else(|_| "another process".into(), |pid| format!("process {pid}"))
}

/// Who ran `sudo`, if root got here by that.
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
