//! Opens a folder, and creates files and folders in it.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, Stat, Uid, chownat, fchmod, fstat, fstatvfs,
    fsync, mkdirat, openat, statat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::folder::file::OutFile;
use crate::folder::modes::Modes;
use crate::folder::observer::{Observer, Operation, before, uninterrupted};

/// An open folder of this user. Clones refer to the same folder.
#[derive(Clone, Debug)]
pub struct Folder(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    fd: OwnedFd,
    /// The path as given: for messages, and for readers that take a path.
    path: PathBuf,
    modes: Modes,
    observer: Option<Arc<dyn Observer>>,
}

/// Whether a folder already existed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// It was created.
    New,
    Before,
}

const FOLDER_FLAGS: OFlags =
    OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(OFlags::RDONLY);

impl Folder {
    /// Opens an existing folder.
    ///
    /// # Errors
    /// If it does not exist, is a symbolic link, belongs to another user, or is writable for
    /// others.
    pub fn open(path: &Path, modes: Modes) -> io::Result<Self> {
        Self::open_in(CWD, path, path.to_owned(), modes, None)
    }

    /// Opens a folder, and creates it if it does not exist. Its parent folder may belong to any
    /// user.
    ///
    /// # Errors
    /// As for [`Folder::open`], and if it cannot be created.
    pub fn open_or_make(
        path: &Path,
        modes: Modes,
        observer: Option<Arc<dyn Observer>>,
    ) -> io::Result<(Self, Made)> {
        Self::open_or_make_in(CWD, path, path.to_owned(), modes, observer)
    }

    /// Creates a folder.
    ///
    /// # Errors
    /// If the name exists, or if the folder cannot be created.
    pub fn make(path: &Path, modes: Modes) -> io::Result<Self> {
        mkdirat(CWD, path, modes.folder())?;
        let made = Self::open(path, modes)?;
        made.keep_to_modes()?;
        Ok(made)
    }

    fn open_or_make_in(
        at: BorrowedFd<'_>,
        name: &Path,
        path: PathBuf,
        modes: Modes,
        observer: Option<Arc<dyn Observer>>,
    ) -> io::Result<(Self, Made)> {
        let made = uninterrupted(|| {
            before(observer.as_ref(), &Operation::MakeFolder(&path))?;
            match mkdirat(at, name, modes.folder()) {
                Ok(()) => Ok(Made::New),
                Err(Errno::EXIST) => Ok(Made::Before),
                Err(error) => Err(error.into()),
            }
        })?;
        let folder = Self::open_in(at, name, path, modes, observer)?;
        if made == Made::New {
            folder.keep_to_modes()?;
        }
        Ok((folder, made))
    }

    fn open_in(
        at: BorrowedFd<'_>,
        name: &Path,
        path: PathBuf,
        modes: Modes,
        observer: Option<Arc<dyn Observer>>,
    ) -> io::Result<Self> {
        let fd = openat(at, name, FOLDER_FLAGS, Mode::empty()).map_err(|error| match error {
            // The errors of O_NOFOLLOW for a symbolic link, with and without O_DIRECTORY.
            Errno::NOTDIR | Errno::LOOP => not_a_folder(&error.into()),
            error => error.into(),
        })?;
        check_folder(&fstat(&fd)?)?;
        Ok(Self(Arc::new(Inner { fd, path, modes, observer })))
    }

    /// Sets the permissions, because the inherited umask may be wider or narrower than requested.
    fn keep_to_modes(&self) -> io::Result<()> {
        Ok(fchmod(&self.0.fd, self.0.modes.folder())?)
    }

    /// A subfolder; created if it does not exist.
    ///
    /// # Errors
    /// As for [`Folder::open_or_make`].
    pub fn subfolder(&self, name: &str) -> io::Result<Self> {
        let (name, path) = self.named(name)?;
        let Inner { modes, observer, .. } = &*self.0;
        let made = Self::open_or_make_in(self.0.fd.as_fd(), name, path, *modes, observer.clone());
        made.map(|(folder, _)| folder)
    }

    /// An existing subfolder.
    ///
    /// # Errors
    /// As for [`Folder::open`].
    pub fn existing_subfolder(&self, name: &str) -> io::Result<Self> {
        let (name, path) = self.named(name)?;
        let Inner { modes, observer, .. } = &*self.0;
        Self::open_in(self.0.fd.as_fd(), name, path, *modes, observer.clone())
    }

    /// Creates a file.
    ///
    /// # Errors
    /// If the name exists, even as a dangling symbolic link.
    pub fn create_new(&self, name: &str) -> io::Result<OutFile> {
        let (name, path) = self.named(name)?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY;
        let file = uninterrupted(|| {
            self.before(&Operation::Open(&path))?;
            self.open_file(name, flags, self.0.modes.file())
        })?;
        fchmod(&file, self.0.modes.file())?;
        OutFile::new(file, path, self.0.observer.clone())
    }

    /// A file to append to; created if it does not exist.
    ///
    /// # Errors
    /// If it is a symbolic link, is not a regular file, belongs to another user, or has several
    /// hard links.
    pub fn append(&self, name: &str) -> io::Result<OutFile> {
        match self.create_new(name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made,
        }
        let (name, path) = self.named(name)?;
        let file = self.open_file(name, OFlags::WRONLY, Mode::empty())?;
        check_file(&fstat(&file)?)?;
        OutFile::new(file, path, self.0.observer.clone())
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// As for [`Folder::append`], and if it does not exist.
    pub fn read(&self, name: &str) -> io::Result<File> {
        let (name, _) = self.named(name)?;
        let file = self.open_file(name, OFlags::RDONLY, Mode::empty())?;
        check_file(&fstat(&file)?)?;
        Ok(file)
    }

    /// A file for locks and small texts, open for reading and writing; created if it does not
    /// exist.
    ///
    /// # Errors
    /// As for [`Folder::append`].
    pub fn read_write(&self, name: &str) -> io::Result<File> {
        let (name, path) = self.named(name)?;
        let flags = OFlags::RDWR | OFlags::CREATE;
        let file = uninterrupted(|| {
            self.before(&Operation::Open(&path))?;
            self.open_file(name, flags, self.0.modes.file())
        })?;
        check_file(&fstat(&file)?)?;
        Ok(file)
    }

    fn open_file(&self, name: &Path, flags: OFlags, mode: Mode) -> io::Result<File> {
        // An existing FIFO must not block this call until its other end is opened.
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = openat(&self.0.fd, name, flags, mode).map_err(|error| match error {
            Errno::LOOP => io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is a symbolic link, which is not followed: remove it",
            ),
            error => error.into(),
        })?;
        Ok(file.into())
    }

    /// Whether the name exists, even as a dangling symbolic link.
    #[must_use]
    pub fn holds(&self, name: &str) -> bool {
        self.stat(name).is_ok()
    }

    /// Whether its path still refers to it.
    #[must_use]
    pub fn is_at_its_path(&self) -> bool {
        let there = statat(CWD, self.path(), AtFlags::SYMLINK_NOFOLLOW).map(|stat| identity(&stat));
        there.is_ok_and(|there| self.identity().is_ok_and(|ours| ours == there))
    }

    /// Its current path; `None` if it was removed.
    #[must_use]
    pub fn place(&self) -> Option<PathBuf> {
        if self.is_at_its_path() {
            return Some(self.path().to_owned());
        }
        // A removed folder has no link to itself, and none from its parent.
        let is_there = fstat(&self.0.fd).is_ok_and(|stat| stat.st_nlink > 0);
        let open = format!("/proc/self/fd/{}", self.0.fd.as_raw_fd());
        std::fs::read_link(open).ok().filter(|_| is_there)
    }

    /// Whether an open file is still the one with this name.
    #[must_use]
    pub fn is_still(&self, name: &str, file: &File) -> bool {
        let same = |stat: Stat| fstat(file).is_ok_and(|open| identity(&open) == identity(&stat));
        self.stat(name).is_ok_and(same)
    }

    pub(crate) fn stat(&self, name: &str) -> io::Result<Stat> {
        let (name, _) = self.named(name)?;
        Ok(statat(&self.0.fd, name, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// The names of its entries.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let entries = Dir::read_from(&self.0.fd)?;
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry?;
            // All names in it come from this program; other names are ignored.
            if let Ok(name) = entry.file_name().to_str()
                && !matches!(name, "." | "..")
            {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// Changes owner and group of all its content, and finally of the folder itself.
    ///
    /// # Errors
    /// If this is not permitted.
    pub fn give_to(&self, user: u32, group: u32) -> io::Result<()> {
        let owner = (Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
        for name in self.names()? {
            if FileType::from_raw_mode(self.stat(&name)?.st_mode).is_dir() {
                self.existing_subfolder(&name)?.give_to(user, group)?;
            } else {
                chownat(&self.0.fd, &*name, owner.0, owner.1, AtFlags::SYMLINK_NOFOLLOW)?;
            }
        }
        Ok(rustix::fs::fchown(&self.0.fd, owner.0, owner.1)?)
    }

    /// Flushes its entries to the disk: created, renamed and removed files.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn sync(&self) -> io::Result<()> {
        uninterrupted(|| {
            self.before(&Operation::Sync(&self.0.path))?;
            match fsync(&self.0.fd) {
                // The file system needs no flush for this.
                Ok(()) | Err(Errno::INVAL) => Ok(()),
                Err(error) => Err(error.into()),
            }
        })
    }

    /// Free space on its file system in bytes.
    ///
    /// # Errors
    /// If the system does not report it.
    pub fn free_bytes(&self) -> io::Result<u64> {
        let file_system = fstatvfs(&self.0.fd)?;
        let free = if geteuid().is_root() { file_system.f_bfree } else { file_system.f_bavail };
        Ok(free.saturating_mul(file_system.f_frsize))
    }

    /// Total size of its files, including those in subfolders, in bytes.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn bytes(&self) -> io::Result<u64> {
        let mut bytes = 0_u64;
        for name in self.names()? {
            let stat = self.stat(&name)?;
            bytes = bytes.saturating_add(if FileType::from_raw_mode(stat.st_mode).is_dir() {
                self.existing_subfolder(&name)?.bytes()?
            } else {
                u64::try_from(stat.st_size).unwrap_or(0)
            });
        }
        Ok(bytes)
    }

    /// The path by which it was opened. Code that uses this path follows links, and finds another
    /// folder if this one was renamed.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// The permissions of files and folders created in it.
    #[must_use]
    pub fn modes(&self) -> Modes {
        self.0.modes
    }

    /// Device and inode number, which identify the folder.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn identity(&self) -> io::Result<(u64, u64)> {
        Ok(identity(&fstat(&self.0.fd)?))
    }

    pub(crate) fn fd(&self) -> &OwnedFd {
        &self.0.fd
    }

    pub(crate) fn observer(&self) -> Option<Arc<dyn Observer>> {
        self.0.observer.clone()
    }

    pub(crate) fn before(&self, operation: &Operation<'_>) -> io::Result<()> {
        before(self.0.observer.as_ref(), operation)
    }

    /// A plain name for use with the descriptor, and the complete path for messages.
    pub(crate) fn named<'n>(&self, name: &'n str) -> io::Result<(&'n Path, PathBuf)> {
        if name.is_empty() || name.contains(['/', '\0']) || matches!(name, "." | "..") {
            let text = format!("{name:?} is not a plain file name");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        Ok((Path::new(name), self.0.path.join(name)))
    }
}

#[allow(clippy::useless_conversion, clippy::unnecessary_cast, reason = "other sizes elsewhere")]
fn identity(stat: &Stat) -> (u64, u64) {
    (stat.st_dev as u64, stat.st_ino as u64)
}

fn not_a_folder(error: &io::Error) -> io::Error {
    let text = format!("it is a symbolic link or not a folder ({error}): name the folder itself");
    io::Error::new(io::ErrorKind::NotADirectory, text)
}

/// Checks that other users cannot change the folder's entries.
fn check_folder(stat: &Stat) -> io::Result<()> {
    check_owner(stat)?;
    let others = stat.st_mode & 0o022;
    if others != 0 {
        let text = format!(
            "others can write to it (mode {:04o}): name a new folder, or chmod go-w it and check its contents",
            stat.st_mode & 0o7777
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    Ok(())
}

/// Checks that writes to an existing file affect only that file.
fn check_file(stat: &Stat) -> io::Result<()> {
    let refused = |text: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    if !FileType::from_raw_mode(stat.st_mode).is_file() {
        return refused("it is not a regular file: remove it");
    }
    check_owner(stat)?;
    if stat.st_nlink > 1 {
        return refused("it has another name (a hard link): remove it");
    }
    Ok(())
}

fn check_owner(stat: &Stat) -> io::Result<()> {
    let own_user = geteuid().as_raw();
    if stat.st_uid == own_user {
        return Ok(());
    }
    let text = format!(
        "it belongs to user {}, but this program, run by user {own_user}, writes only to its own files: name \
         another one, or remove it",
        stat.st_uid
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}
