//! Where a trace is: the folder with its metadata, which LTTng has below that of a session.

use std::path::{Path, PathBuf};

use crate::open::OpenError;

/// The file with what a trace's streams hold.
const METADATA: &str = "metadata";
/// Folders below a session that are looked into for other traces.
const MOST_DEPTH: usize = 5;
/// Traces of a session that are named.
const MOST_NAMED: usize = 4;

/// The folder of the trace that `path` stands for: itself, or that of a session: the `kernel`, or the only one. None: it is
/// neither a trace nor a session.
///
/// # Errors
/// When it is a session with several traces, none of the kernel.
pub(crate) fn trace(path: &Path) -> Result<Option<PathBuf>, OpenError> {
    if path.join(METADATA).is_file() {
        return Ok(Some(path.to_owned()));
    }
    let kernel = path.join("kernel");
    if kernel.join(METADATA).is_file() {
        return Ok(Some(kernel));
    }
    let mut found = Vec::new();
    below(path, MOST_DEPTH, &mut found);
    if found.len() < 2 {
        return Ok(found.pop());
    }
    found.sort();
    let names = found.iter().take(MOST_NAMED).map(|one| one.display().to_string());
    let more = if found.len() > MOST_NAMED { ", …" } else { "" };
    let what = format!(
        "several CTF traces, none of them in its kernel folder; give one of them: {}{more}",
        names.collect::<Vec<_>>().join(", ")
    );
    Err(OpenError::Folder { path: path.to_owned(), what })
}

/// Folders with metadata below one.
fn below(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let Ok(entries) = folder.read_dir() else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if found.len() > MOST_NAMED || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        if path.join(METADATA).is_file() {
            found.push(path);
        } else if depth > 0 {
            below(&path, depth - 1, found);
        }
    }
}

/// The files of a trace's streams, in the order of their names. LTTng's `index` is a folder.
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

/// The file with what a trace's streams hold.
pub(super) fn metadata(trace: &Path) -> PathBuf {
    trace.join(METADATA)
}
