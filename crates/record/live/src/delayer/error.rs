//! Why exits can't be delayed.

use std::io;
use std::path::PathBuf;

use crate::LiveError;
use bpf::load::LoadError;

#[derive(Debug, thiserror::Error)]
pub enum DelayError {
    /// The object supports no such processor.
    #[error("exits can be delayed only on 64-bit x86 and Arm")]
    Architecture,
    /// The programs can't run.
    #[error(
        "cannot delay exits (this needs Linux 5.17 or later, and root or CAP_BPF and CAP_PERFMON)"
    )]
    Programs(#[from] LoadError),
    /// The names of exit reasons can't be read.
    #[error(transparent)]
    Reasons(#[from] LiveError),
    /// There are too many exit codes.
    #[error("these reasons have {0} codes, more than the limit of {MAX}: choose fewer reasons", MAX = crate::delayer::MAX_CODES)]
    TooMany(usize),
    /// Reading the file of the workload's progress failed.
    #[error("{}: cannot read a growing number", .0.display())]
    Counter(PathBuf, #[source] io::Error),
}

pub type Result<T> = std::result::Result<T, DelayError>;

impl From<aya::maps::MapError> for DelayError {
    fn from(error: aya::maps::MapError) -> Self {
        Self::Programs(error.into())
    }
}
