//! A source of files that this system lacks, such as a server. The program sets it once for all its
//! code.

use std::path::PathBuf;

use parking_lot::Mutex;
use perfdata::BuildId;

/// The file that is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WantedFile {
    /// The debug file: the file itself is available, but has too few names.
    DebugFile,
    /// The debug file, or the file itself.
    Either,
}

/// Obtains files by build id.
pub trait Fetch: Send {
    /// The path of a file with a build id; `None` if it is not available. `name` is its name where
    /// it was mapped, for messages.
    fn fetch(&mut self, name: &str, build_id: &BuildId, wanted: WantedFile) -> Option<PathBuf>;
}

static INSTALLED: Mutex<Option<Box<dyn Fetch>>> = Mutex::new(None);

/// Sets the source of files that this system lacks, for all callers of
/// [`DebugFiles::of_this_system`](crate::DebugFiles::of_this_system). Without a source, such files
/// are missing.
pub fn fetch_by(fetch: Box<dyn Fetch>) {
    *INSTALLED.lock() = Some(fetch);
}

/// The source from [`fetch_by`].
#[derive(Debug)]
pub(crate) struct Installed;

impl Fetch for Installed {
    fn fetch(&mut self, name: &str, build_id: &BuildId, wanted: WantedFile) -> Option<PathBuf> {
        let mut installed = INSTALLED.lock();
        installed.as_mut()?.fetch(name, build_id, wanted)
    }
}
