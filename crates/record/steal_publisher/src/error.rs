//! Why publishing fails.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// No running VM has this name.
    #[error("no VM {0} runs here")]
    NoVm(String),
    /// The VM shares no memory with its host.
    #[error("{0} shares no memory with this host: add an ivshmem device")]
    NoMemory(String),
    /// The VM does not map the file.
    #[error("{} is not memory of {vm}: refusing to publish to another owner", path.display())]
    NotItsMemory {
        /// The requested VM.
        vm: String,
        /// The file.
        path: PathBuf,
    },
    /// Another VM maps the file, too.
    #[error("{} is also memory of {other}, which could then observe {vm}", path.display())]
    SharedWithOthers {
        /// The requested VM.
        vm: String,
        /// The other VM.
        other: String,
        /// The file.
        path: PathBuf,
    },
    /// The host's clock is not the TSC, or KVM does not give the scaling and offset of the guest's TSC.
    #[error("cannot convert times to the clock of {vm}: {why}")]
    NoClock {
        /// The VM.
        vm: String,
        /// What is missing.
        why: &'static str,
    },
    /// The text does not name a guest.
    #[error("{0}")]
    Usage(String),
    /// The memory can't be used.
    #[error("cannot use {}", path.display())]
    Memory {
        /// The file.
        path: PathBuf,
        source: io::Error,
    },
    /// The area can't be laid out.
    #[error("cannot publish to {vm}")]
    Area {
        /// The VM.
        vm: String,
        source: shmring::spans::SpansError,
    },
    /// Tracing failed.
    #[error(transparent)]
    Tracefs(#[from] tracefs::TracefsError),
    /// Reading the trace failed.
    #[error("cannot read the kernel's trace")]
    Pages(#[source] io::Error),
    /// An event's format is unknown.
    #[error("cannot read the kernel's event formats: {0}")]
    Format(String),
}

pub type Result<T> = std::result::Result<T, PublishError>;
