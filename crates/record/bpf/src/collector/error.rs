//! Why the collector failed.

use std::io;
use std::path::{Path, PathBuf};

use crate::load::LoadError;
use aya::maps::MapError;
use tracefs::TracefsError;

#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// An operation on a file failed.
    #[error("cannot {what} {}", path.display())]
    Io {
        /// The operation: "write".
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The object supports no such processor.
    #[error("hypercalls can be collected only on 64-bit x86 and Arm")]
    Architecture,
    /// The programs can't run.
    #[error(transparent)]
    Programs(#[from] LoadError),
    /// The trace clock can't be read.
    #[error("cannot read the trace clock {name}")]
    Clock { name: String, source: Box<TracefsError> },
    /// The kernel refused to wait.
    #[error("cannot wait for BPF programs")]
    Wait(#[source] io::Error),
    /// A bug in this program.
    #[error("the collector's thread panicked")]
    Panicked,
}

pub type Result<T> = std::result::Result<T, CollectError>;

impl From<MapError> for CollectError {
    fn from(error: MapError) -> Self {
        Self::Programs(error.into())
    }
}

impl CollectError {
    /// For `map_err`: a failed operation on a file.
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }

    /// For `map_err`: the trace clock was not read.
    pub(crate) fn clock(name: &str) -> impl FnOnce(TracefsError) -> Self {
        move |source| Self::Clock { name: name.to_owned(), source: Box::new(source) }
    }
}
