//! Why nothing can be shown.

use std::io;
use std::path::PathBuf;

use shmring::spans::SpansError;

#[derive(Debug, thiserror::Error)]
pub enum StealError {
    /// The host shares no memory.
    #[error("this machine shares no memory with its host: the ivshmem device is missing")]
    NoMemory,
    /// The memory can't be mapped.
    #[error("cannot use the memory shared with the host")]
    Memory(#[source] io::Error),
    /// The memory has no spans.
    #[error("cannot show anything")]
    NotPublished(#[from] SpansError),
    /// The TSC's frequency is unknown.
    #[error("neither the host nor this kernel reports the frequency of the TSC")]
    NoRate,
    /// The recording can't be written.
    #[error("cannot write {}", path.display())]
    Recording { path: PathBuf, source: io::Error },
    /// Standard output can't be written.
    #[error("cannot write the measurements")]
    Output(#[source] io::Error),
}

pub type Result<T> = std::result::Result<T, StealError>;
