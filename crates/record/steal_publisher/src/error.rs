//! Why nothing can be published.

use std::io;
use std::path::PathBuf;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// No VM of that name runs here.
    #[error("no VM {0} runs here")]
    NoVm(String),
    /// The VM has no memory that it shares with its host.
    #[error("{0} shares no memory with this host: add an ivshmem device")]
    NoMemory(String),
    /// The VM does not map the file.
    #[error("{} is not memory of {vm}: refusing to publish to another owner", path.display())]
    NotItsMemory {
        /// The VM that was named.
        vm: String,
        /// The file.
        path: PathBuf,
    },
    /// Another VM maps the file, too.
    #[error("{} is also memory of {other}, which could then observe {vm}", path.display())]
    SharedWithOthers {
        /// The VM that was named.
        vm: String,
        /// The other one.
        other: String,
        /// The file.
        path: PathBuf,
    },
    /// The host's clock is not the TSC, or KVM doesn't say what it does to the guest's.
    #[error("cannot convert times to the clock of {vm}: {why}")]
    NoClock {
        /// The VM.
        vm: String,
        /// What is missing.
        why: &'static str,
    },
    /// What was asked for is not a guest.
    #[error("{0}")]
    Usage(String),
    /// The memory can't be used.
    #[error("cannot use {}", path.display())]
    Memory {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The area can't be laid out.
    #[error("cannot publish to {vm}")]
    Area {
        /// The VM.
        vm: String,
        /// Why.
        source: shmring::spans::SpansError,
    },
    /// The kernel allows no tracing.
    #[error(transparent)]
    Tracefs(#[from] tracefs::TracefsError),
    /// The kernel's trace can't be read.
    #[error("cannot read the kernel's trace")]
    Pages(#[source] io::Error),
    /// An event's format is not understood.
    #[error("cannot read the kernel's event formats: {0}")]
    Format(String),
}

pub type Result<T> = std::result::Result<T, PublishError>;
