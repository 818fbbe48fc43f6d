//! The cache, shared with elfutils' client and other tools: a folder per build id with a file per
//! kind.
//!
//! An empty file records that no server had the file, and since when. Only expired empty files are
//! removed: elfutils' tools clean up files that have not been used for a week.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::NamedTempFile;

/// The default time after which a missing file is requested again.
const DEFAULT_MISS: Duration = Duration::from_secs(600);

/// The cache's knowledge about a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cached {
    File(PathBuf),
    /// No server had it recently.
    Missed,
    /// It has not been requested yet.
    Unknown,
}

/// The folder.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    folder: PathBuf,
}

impl Cache {
    pub(crate) const fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn path(&self, build_id: &str, kind: &str) -> PathBuf {
        self.folder.join(build_id).join(kind)
    }

    /// The cache's knowledge about the file of a kind for a build id.
    pub(crate) fn look(&self, build_id: &str, kind: &str) -> Cached {
        let path = self.path(build_id, kind);
        let Ok(about) = fs::metadata(&path) else { return Cached::Unknown };
        if !about.is_file() {
            return Cached::Unknown;
        }
        if about.len() > 0 {
            return Cached::File(path);
        }
        let age = about.modified().ok().and_then(|at| at.elapsed().ok());
        // A time in the future means that the clock was changed.
        if age.is_some_and(|age| age <= self.miss()) {
            return Cached::Missed;
        }
        let _ = fs::remove_file(&path);
        Cached::Unknown
    }

    fn miss(&self) -> Duration {
        let mut text = String::new();
        let read = File::open(self.folder.join("cache_miss_s"))
            .and_then(|file| file.take(32).read_to_string(&mut text));
        let seconds = read.ok().and_then(|_| text.trim().parse().ok());
        seconds.map_or(DEFAULT_MISS, Duration::from_secs)
    }

    /// A new file for the cache: it has a temporary name until `keep`, and is removed on drop.
    pub(crate) fn begin(&self, build_id: &str, kind: &str) -> io::Result<NamedTempFile> {
        let folder = self.folder.join(build_id);
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        tempfile::Builder::new().prefix(&format!("{kind}.")).tempfile_in(folder)
    }

    /// Renames the file to its final name atomically.
    pub(crate) fn keep(
        &self,
        file: NamedTempFile,
        build_id: &str,
        kind: &str,
    ) -> io::Result<PathBuf> {
        let path = self.path(build_id, kind);
        file.as_file().set_permissions(Permissions::from_mode(0o400))?;
        file.persist(&path).map_err(|error| error.error)?;
        Ok(path)
    }

    /// Records that no server has it.
    pub(crate) fn note_missed(&self, build_id: &str, kind: &str) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(self.folder.join(build_id))?;
        match File::create_new(self.path(build_id, kind)) {
            // Another process has stored the file meanwhile, or has also found it missing.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made.map(|_| ()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn what_is_kept_is_there_and_what_is_dropped_is_not() {
        let at = tempfile::tempdir().unwrap();
        let cache = Cache::new(at.path().join("a/b"));
        assert_eq!(cache.look("c0ffee", "debuginfo"), Cached::Unknown);
        drop(cache.begin("c0ffee", "debuginfo").unwrap());
        let mut file = cache.begin("c0ffee", "debuginfo").unwrap();
        file.write_all(b"whole").unwrap();
        assert_eq!(cache.look("c0ffee", "debuginfo"), Cached::Unknown);
        let path = cache.keep(file, "c0ffee", "debuginfo").unwrap();
        assert_eq!(path, at.path().join("a/b/c0ffee/debuginfo"));
        assert_eq!(cache.look("c0ffee", "debuginfo"), Cached::File(path.clone()));
        assert_eq!(fs::read(path).unwrap(), b"whole");
        assert_eq!(fs::read_dir(at.path().join("a/b/c0ffee")).unwrap().count(), 1);
    }

    #[test]
    fn what_nobody_had_is_remembered_for_a_while() {
        let at = tempfile::tempdir().unwrap();
        let cache = Cache::new(at.path().to_owned());
        cache.note_missed("c0ffee", "debuginfo").unwrap();
        cache.note_missed("c0ffee", "debuginfo").unwrap();
        assert_eq!(cache.look("c0ffee", "debuginfo"), Cached::Missed);
        assert_eq!(cache.look("c0ffee", "executable"), Cached::Unknown);
        let file = File::options().write(true).open(at.path().join("c0ffee/debuginfo")).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(100)).unwrap();
        assert_eq!(cache.look("c0ffee", "debuginfo"), Cached::Missed);
        fs::write(at.path().join("cache_miss_s"), "50\n").unwrap();
        assert_eq!(cache.look("c0ffee", "debuginfo"), Cached::Unknown);
        assert!(!at.path().join("c0ffee/debuginfo").exists());
    }

    #[test]
    fn folders_and_devices_are_no_files() {
        let at = tempfile::tempdir().unwrap();
        let cache = Cache::new(at.path().to_owned());
        fs::create_dir_all(at.path().join("c0ffee/debuginfo")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", at.path().join("c0ffee/executable")).unwrap();
        assert_eq!(cache.look("c0ffee", "debuginfo"), Cached::Unknown);
        assert_eq!(cache.look("c0ffee", "executable"), Cached::Unknown);
    }
}
