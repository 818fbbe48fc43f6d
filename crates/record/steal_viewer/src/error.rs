//! Why cannot show anything.

use std::io;
use std::path::PathBuf;

use shmring::spans::SpansError;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum StealError {
    /// No memory is shared with the host.
    #[error("this machine shares no memory with its host: the ivshmem device is missing")]
    NoMemory,
    /// The memory can't be mapped.
    #[error("cannot use the memory shared with the host")]
    Memory(#[source] io::Error),
    /// The memory holds nothing of vCPUs.
    #[error("cannot show anything")]
    NotPublished(#[from] SpansError),
    /// Nobody knows how fast the TSC counts.
    #[error("neither the host nor this kernel reports the frequency of the TSC")]
    NoRate,
    /// The recording can't be written.
    #[error("cannot write {}", path.display())]
    Recording {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Standard output can't be written.
    #[error("cannot write the measurements")]
    Output(#[source] io::Error),
}

pub type Result<T> = std::result::Result<T, StealError>;
