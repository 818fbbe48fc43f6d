//! Finds out what an input is and opens it.

use std::path::{Path, PathBuf};

use sys::FileMap;
use tracedat::{TraceDat, TraceDatError};

use crate::recording::Recording;
use crate::{raw_pages, trace_dat};

/// An input that can't be opened as a recording.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file can't be read at all.
    #[error(transparent)]
    File(#[from] sys::OpenError),
    /// The file holds nothing.
    #[error("{} is empty; was the recording stopped before it wrote anything?", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// A trace.dat that is damaged beyond use.
    #[error("{}", path.display())]
    TraceDat {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: TraceDatError,
    },
    /// A perf.data file.
    #[error(
        "{} is a perf.data file, which is not read yet; record with trace-cmd record instead",
        path.display()
    )]
    PerfData {
        /// The file.
        path: PathBuf,
    },
    /// A folder that is no recording.
    #[error("{}: {what}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What is missing.
        what: String,
    },
    /// More streams than can be told apart.
    #[error("{} has {count} per-CPU buffers; at most 65535 can be read", path.display())]
    TooManyStreams {
        /// The file.
        path: PathBuf,
        /// Buffers it has.
        count: usize,
    },
}

/// Opens the recording at `path`: a trace.dat, or a folder with bare pages and event formats.
///
/// # Errors
/// When it can't be read as a recording at all; damage to parts is in [`Recording::damage`].
pub fn open(path: &Path) -> Result<Recording, OpenError> {
    let recording = if path.is_dir() {
        raw_pages::open(path)?
    } else {
        let file = FileMap::open(path)?;
        if file.is_empty() {
            return Err(OpenError::Empty { path: path.to_owned() });
        }
        if file.starts_with(b"PERFILE2") || file.starts_with(b"2ELIFREP") {
            return Err(OpenError::PerfData { path: path.to_owned() });
        }
        let dat = TraceDat::parse(&file)
            .map_err(|source| OpenError::TraceDat { path: path.to_owned(), source })?;
        trace_dat::recording(path, file, dat)
    };
    let count = recording.streams.len();
    if count > usize::from(u16::MAX) {
        return Err(OpenError::TooManyStreams { path: path.to_owned(), count });
    }
    Ok(recording)
}
