//! A file that replaces another one when it is complete.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use rustix::fs::{Access, FlockOperation, Mode, OFlags};

/// The kernel follows as many symbolic links.
const MAX_LINKS: usize = 40;
/// Suffix of the names of incomplete files.
const ENDING: &str = ".hyperscope.tmp";
/// Max bytes of a file's name.
const MAX_NAME_BYTES: usize = 255;

/// An incomplete file, next to the file that it will replace.
#[derive(Debug)]
pub(super) struct Replacement {
    file: File,
    unfinished: PathBuf,
    place: PathBuf,
    is_complete: bool,
}

/// The target of a path, with all links followed. `None` if only the file itself can be written: a
/// device, a pipe, or a descriptor of this process (`/dev/stdout`), to which others write as well.
///
/// # Errors
/// When the path has no target.
pub(super) fn place(path: &Path) -> io::Result<Option<PathBuf>> {
    if fs::metadata(path).is_ok_and(|file| !file.is_file()) {
        return Ok(None);
    }
    let mut place = path.to_owned();
    for _ in 0..MAX_LINKS {
        let folder = match place.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => fs::canonicalize(folder)?,
            _ => fs::canonicalize(".")?,
        };
        let Some(name) = place.file_name() else { return Ok(None) };
        let found = folder.join(name);
        if folder.starts_with("/proc") {
            return Ok(None);
        }
        match fs::read_link(&found) {
            Ok(to) => place = folder.join(to),
            Err(_) => return Ok(Some(found)),
        }
    }
    Err(rustix::io::Errno::LOOP.into())
}

impl Replacement {
    /// Begins a file for `place`, with permissions and owner of the existing file.
    ///
    /// # Errors
    /// When it can't be made, the existing file is not writable, or another run writes it.
    pub(super) fn begin(place: &Path) -> anyhow::Result<Self> {
        let old = fs::metadata(place).ok();
        if old.is_some() {
            rustix::fs::access(place, Access::WRITE_OK)?;
        }
        let unfinished = unfinished(place);
        let file = lock(&unfinished)?;
        let replacement = Self { file, unfinished, place: place.to_owned(), is_complete: false };
        if let Some(old) = old {
            let new = replacement.file.metadata()?;
            if (old.uid(), old.gid()) != (new.uid(), new.gid()) {
                // Only root may give files away; other users own the new file.
                let _ =
                    std::os::unix::fs::fchown(&replacement.file, Some(old.uid()), Some(old.gid()));
            }
            replacement.file.set_permissions(fs::Permissions::from_mode(old.mode() & 0o7777))?;
        }
        Ok(replacement)
    }

    /// The file to write to.
    pub(super) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Moves the file to its place.
    ///
    /// # Errors
    /// When that fails.
    pub(super) fn complete(mut self) -> anyhow::Result<()> {
        // The file stays even if the rename fails: it may be the work of hours.
        self.is_complete = true;
        let (from, to) = (&self.unfinished, &self.place);
        fs::rename(from, to).with_context(|| {
            format!(
                "cannot rename {} to {}; the first file has the output",
                from.display(),
                to.display()
            )
        })
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if !self.is_complete {
            // The next run replaces a file that can't be removed.
            let _ = fs::remove_file(&self.unfinished);
        }
    }
}

/// `.NAME.hyperscope.tmp` in the same folder: a rename works only within a file system.
fn unfinished(place: &Path) -> PathBuf {
    let name = place.file_name().unwrap_or_default();
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(ENDING);
    if hidden.len() > MAX_NAME_BYTES {
        let name = name.to_string_lossy();
        let prefix: String = name.chars().take(MAX_NAME_BYTES / 8).collect();
        hidden = format!(".{prefix}{ENDING}").into();
    }
    place.with_file_name(hidden)
}

/// Creates the unfinished file, or takes over that of a killed run. The lock distinguishes such a file
/// from that of a live run.
fn lock(path: &Path) -> anyhow::Result<File> {
    for _ in 0..MAX_LINKS {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let mut options = OpenOptions::new();
        let file = options
            .write(true)
            .create(true)
            .truncate(false)
            .mode(Mode::from_raw_mode(0o666).as_raw_mode())
            .custom_flags(flags)
            .open(path)
            .with_context(|| format!("cannot write {}", path.display()))?;
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.nlink() > 1 {
            bail!(
                "{} is in the way and is not the file of an earlier run: remove it",
                path.display()
            );
        }
        let locked = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
        // Some file systems have no locks: there, users must avoid two runs at once.
        if locked == Err(rustix::io::Errno::WOULDBLOCK) {
            bail!("another run is writing this file, through {}", path.display());
        }
        // The previous holder of the lock may have renamed or removed the file meanwhile.
        let is_there = fs::metadata(path).is_ok_and(|there| there.ino() == metadata.ino());
        if is_there {
            file.set_len(0)?;
            return Ok(file);
        }
    }
    bail!("{} keeps changing: other runs are writing it", path.display())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_files_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().canonicalize().unwrap().join(name);
        fs::write(at("file"), "").unwrap();
        symlink("file", at("link")).unwrap();
        symlink("new", at("dangling")).unwrap();
        symlink("loop", at("loop")).unwrap();
        assert_eq!(place(&at("link")).unwrap(), Some(at("file")));
        assert_eq!(place(&at("dangling")).unwrap(), Some(at("new")));
        assert!(place(&at("loop")).is_err());
        for special in ["/dev/null", "/dev/stdout", "/dev/fd/2", "/proc/self/fd/1"] {
            assert_eq!(place(Path::new(special)).unwrap(), None, "{special}");
        }
    }

    #[test]
    fn two_runs_do_not_write_one_file() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("out");
        let mut first = Replacement::begin(&place).unwrap();
        assert!(Replacement::begin(&place).is_err());
        first.file().write_all(b"first").unwrap();
        first.complete().unwrap();
        assert_eq!(fs::read(&place).unwrap(), b"first");
        drop(Replacement::begin(&place).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn long_names_have_room_for_the_ending() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("n".repeat(MAX_NAME_BYTES));
        Replacement::begin(&place).unwrap().complete().unwrap();
        assert!(place.exists());
    }
}
