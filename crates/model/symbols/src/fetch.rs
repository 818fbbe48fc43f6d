//! The source of files that this system lacks, such as a server: the program sets it once, for all
//! its code.

use std::path::PathBuf;

use parking_lot::Mutex;
use perfdata::BuildId;

/// What would help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WantedFile {
    /// The debug file: the file itself is here, and has too few names.
    DebugFile,
    /// The debug file, else the file itself.
    Either,
}

/// Gets files by their build ids from elsewhere.
pub trait Fetch: Send {
    /// The path of a file with a build id; `None`: it isn't to be had. `name` is what it was called where it was
    /// mapped, for people to read.
    fn fetch(&mut self, name: &str, build_id: &BuildId, wanted: WantedFile) -> Option<PathBuf>;
}

static INSTALLED: Mutex<Option<Box<dyn Fetch>>> = Mutex::new(None);

/// From now on files that this system lacks come from there, for all callers of
/// [`DebugFiles::of_this_system`](crate::DebugFiles::of_this_system). Without a source they stay missing.
pub fn fetch_by(fetch: Box<dyn Fetch>) {
    *INSTALLED.lock() = Some(fetch);
}

/// What was given to [`fetch_by`].
#[derive(Debug)]
pub(crate) struct Installed;

impl Fetch for Installed {
    fn fetch(&mut self, name: &str, build_id: &BuildId, wanted: WantedFile) -> Option<PathBuf> {
        let mut installed = INSTALLED.lock();
        installed.as_mut()?.fetch(name, build_id, wanted)
    }
}
