//! Finds the folder of a trace, which contains its metadata; in LTTng sessions it is a subfolder.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::open_error::{OpenError, OpenFault};

/// The file that describes a trace's streams.
const METADATA: &str = "metadata";
/// Maximum depth of the search for traces in a session's folder.
const MAX_DEPTH: usize = 5;
/// Maximum folder entries to search: an LTTng session has a few dozen.
const MAX_ENTRIES: usize = 4096;
/// Maximum traces of a session to list in a message.
const MAX_NAMED: usize = 4;

/// The trace folder for `path`: itself, or in a session the `kernel` trace or the only trace.
/// `None` if it is neither a trace nor a session.
///
/// # Errors
/// If it is a session with several traces, none of which is from the kernel.
pub(crate) fn trace(path: &Path) -> Result<Option<PathBuf>, OpenError> {
    if path.join(METADATA).is_file() {
        return Ok(Some(path.to_owned()));
    }
    let kernel = path.join("kernel");
    if kernel.join(METADATA).is_file() {
        return Ok(Some(kernel));
    }
    if is_root(path) {
        return Ok(None);
    }
    let mut walk = Walk { found: Vec::new(), entries_left: MAX_ENTRIES };
    walk.below(path, MAX_DEPTH);
    let Walk { mut found, .. } = walk;
    if found.len() < 2 {
        return Ok(found.pop());
    }
    found.sort();
    let inside = |trace: &PathBuf| trace.strip_prefix(path).unwrap_or(trace).display().to_string();
    let names = found.iter().take(MAX_NAMED).map(inside);
    let more = if found.len() > MAX_NAMED { ", …" } else { "" };
    let what = format!(
        "several CTF traces, none of them in a kernel folder; name one of them: {}{more}",
        names.collect::<Vec<_>>().join(", ")
    );
    Err(OpenError::new(path, OpenFault::Refused(what)))
}

/// Whether a folder is the root of a file system: its contents do not belong to one session.
fn is_root(path: &Path) -> bool {
    let device = |path: &Path| path.metadata().ok().map(|metadata| metadata.dev());
    let Ok(path) = path.canonicalize() else { return false };
    path.parent().is_none_or(|parent| device(parent) != device(&path))
}

/// A search for traces below a folder.
struct Walk {
    found: Vec<PathBuf>,
    entries_left: usize,
}

impl Walk {
    /// Finds folders with metadata below a folder.
    fn below(&mut self, folder: &Path, depth: usize) {
        let Ok(entries) = folder.read_dir() else { return };
        for entry in entries.flatten() {
            if self.found.len() > MAX_NAMED || self.entries_left == 0 {
                return;
            }
            self.entries_left -= 1;
            let path = entry.path();
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            if path.join(METADATA).is_file() {
                self.found.push(path);
            } else if depth > 0 {
                self.below(&path, depth - 1);
            }
        }
    }
}

/// The files of a trace's streams, sorted by name. LTTng's `index` is a folder.
pub(super) fn streams(trace: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in trace.read_dir()? {
        let entry = entry?;
        let name = entry.file_name();
        let is_hidden = name.to_string_lossy().starts_with('.');
        if name != METADATA && !is_hidden && entry.path().is_file() {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

/// The file that describes a trace's streams.
pub(super) fn metadata(trace: &Path) -> PathBuf {
    trace.join(METADATA)
}

#[cfg(test)]
mod tests {
    use std::{env, fs, process};

    use super::*;

    #[test]
    fn the_walk_for_traces_ends_after_a_number_of_entries_and_leaves_roots_alone() {
        let folder = env::temp_dir().join(format!("hyperscope-walk-{}", process::id()));
        for number in 0..8 {
            fs::create_dir_all(folder.join(format!("{number}/deeper"))).unwrap();
        }
        let mut walk = Walk { found: Vec::new(), entries_left: 10 };
        walk.below(&folder, MAX_DEPTH);
        let is_root_of_all = is_root(&folder);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!((walk.entries_left, is_root_of_all), (0, false));
        assert!(is_root(Path::new("/")) && trace(Path::new("/")).unwrap().is_none());
    }
}
