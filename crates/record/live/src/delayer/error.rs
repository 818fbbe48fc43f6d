//! Why exits can't be delayed here.

use std::io;
use std::path::PathBuf;

use crate::LiveError;
use bpf::load::LoadError;

/// The errors of delaying exits.
#[derive(Debug, thiserror::Error)]
pub enum DelayError {
    /// The processor is another one than the programs are made for.
    #[error("exits can be delayed only on 64-bit x86 and Arm")]
    Architecture,
    /// The programs can't run.
    #[error(
        "cannot delay exits (this needs Linux 5.17 or later, and root or CAP_BPF and CAP_PERFMON)"
    )]
    Programs(#[from] LoadError),
    /// Reasons of exits can't be named.
    #[error(transparent)]
    Reasons(#[from] LiveError),
    /// More reasons than there is room for.
    #[error("these reasons have {0} codes, more than the limit of {MAX}: choose fewer reasons", MAX = crate::delayer::MAX_CODES)]
    TooMany(usize),
    /// The file with the workload's progress.
    #[error("{}: cannot read a growing number", .0.display())]
    Counter(PathBuf, #[source] io::Error),
}

/// The crate's results.
pub type Result<T> = std::result::Result<T, DelayError>;

impl From<aya::maps::MapError> for DelayError {
    fn from(error: aya::maps::MapError) -> Self {
        Self::Programs(error.into())
    }
}
