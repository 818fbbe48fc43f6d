//! Why a measurement fails.

use std::io;
use std::path::{Path, PathBuf};

/// Errors of measurements; their texts end with what to do, if something can be done.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The lab failed.
    #[error(transparent)]
    Lab(#[from] lab::LabError),
    /// A recording can't be read.
    #[error("cannot read the recording of {variant}")]
    Recording {
        /// The variant.
        variant: &'static str,
        source: sources::OpenError,
    },
    /// An operation on a file failed.
    #[error("{what} {}", path.display())]
    Io {
        /// The operation: "cannot write".
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A program in the lab printed invalid output.
    #[error("unexpected output of {what}: {text}")]
    Malformed {
        /// The program.
        what: &'static str,
        /// The output, or what is wrong with it.
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
    /// Exits can't be measured here.
    #[error("cannot measure exits here: {0}")]
    Exits(String),
}

pub type Result<T> = std::result::Result<T, BenchError>;

impl BenchError {
    /// For `map_err`: a failed operation on a file.
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }

    /// For `map_err`: output that can't be parsed.
    pub(crate) fn malformed<E: std::fmt::Display>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self::Malformed { what, text: error.to_string() }
    }
}
