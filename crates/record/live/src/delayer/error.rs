//! Why exits can't be delayed here.

use std::io;
use std::path::PathBuf;

use crate::LiveError;
use bpf::load::LoadError;

/// The errors of delaying exits.
#[derive(Debug, thiserror::Error)]
pub enum DelayError {
    /// The processor is another one than the programs are made for.
    #[error("exits can be delayed on 64-bit x86 and Arm only")]
    Architecture,
    /// The programs can't run.
    #[error(
        "exits can't be delayed (Linux 5.17 or later is needed, and root or CAP_BPF and CAP_PERFMON)"
    )]
    Programs(#[from] LoadError),
    /// Reasons of exits can't be named.
    #[error(transparent)]
    Reasons(#[from] LiveError),
    /// More reasons than there is room for.
    #[error("these reasons have {0} codes, and there is room for {MAX}: name fewer of them", MAX = crate::delayer::MAX_CODES)]
    TooMany(usize),
    /// The file with the workload's progress.
    #[error("{}: no number that grows can be read", .0.display())]
    Counter(PathBuf, #[source] io::Error),
}

/// The crate's results.
pub type Result<T> = std::result::Result<T, DelayError>;

impl From<aya::maps::MapError> for DelayError {
    fn from(error: aya::maps::MapError) -> Self {
        Self::Programs(error.into())
    }
}
