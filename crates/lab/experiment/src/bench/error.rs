//! Why a measurement can't be made.

use std::io;
use std::path::{Path, PathBuf};

/// Errors of measurements; their texts end with what to do, where something can be done.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The lab failed.
    #[error(transparent)]
    Lab(#[from] lab::LabError),
    /// What was recorded can't be read.
    #[error("cannot read the recording of {variant}")]
    Recording {
        /// The variant.
        variant: &'static str,
        /// Why.
        source: sources::OpenError,
    },
    /// A file failed.
    #[error("{what} {}", path.display())]
    Io {
        /// What was tried: "cannot write".
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A program in the lab said something that makes no sense.
    #[error("unexpected output of {what}: {text}")]
    Malformed {
        /// The program.
        what: &'static str,
        /// What it said, or why it makes no sense.
        text: String,
    },
    /// The agent was not built, or is elsewhere.
    #[error(
        "hyperscope-agent is missing: build it with `cargo build --release -p hyperscope-agent`, next to this program, or set HYPERSCOPE_AGENT"
    )]
    NoAgent,
    /// The recorder of hosts was not built, or is elsewhere.
    #[error(
        "hyperscope is missing; `cargo build --release -p hyperscope` builds it, to be put next to this program or on the PATH"
    )]
    NoHyperscope,
    /// No exit can be measured here.
    #[error("cannot measure exits here: {0}")]
    Exits(String),
}

/// Results of measurements.
pub type Result<T> = std::result::Result<T, BenchError>;

impl BenchError {
    /// For `map_err`: a failed operation on a file.
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }

    /// For `map_err`: something that can't be understood.
    pub(crate) fn malformed<E: std::fmt::Display>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self::Malformed { what, text: error.to_string() }
    }
}
