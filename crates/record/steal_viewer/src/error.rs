//! Why nothing can be shown.

use std::io;
use std::path::PathBuf;

use shmring::spans::SpansError;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum StealError {
    /// No memory is shared with the host.
    #[error("this machine shares no memory with its host: it has no such ivshmem device")]
    NoMemory,
    /// The memory can't be mapped.
    #[error("cannot use the memory shared with the host")]
    Memory(#[source] io::Error),
    /// The memory holds nothing of vCPUs.
    #[error("nothing can be shown")]
    NotPublished(#[from] SpansError),
    /// Nobody knows how fast the TSC counts.
    #[error("neither the host nor this kernel says how fast the TSC counts")]
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
    #[error("cannot write what was measured")]
    Output(#[source] io::Error),
}

pub type Result<T> = std::result::Result<T, StealError>;
