//! Why nothing can be recorded, or not all of it, and what would mend that.

use std::io;
use std::path::{Path, PathBuf};

use tracefs::TracefsError;

/// The recorder's errors.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A file of the session failed.
    #[error("cannot {what} {}", path.display())]
    Io {
        /// What was tried: "write".
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another recorder has the session's folder.
    #[error("{holder} is recording into {}: stop it, or name another folder with -o", path.display())]
    SessionTaken {
        /// The folder.
        path: PathBuf,
        /// Who has it.
        holder: String,
    },
    /// The folder with what is kept was removed.
    #[error("the folder {} was removed during recording: the recording is lost", path.display())]
    FolderRemoved {
        /// The folder.
        path: PathBuf,
    },
    /// There is a recording in the session's folder.
    #[error("{} already holds a recording ({file}): name another folder with -o", path.display())]
    HoldsRecording {
        /// The folder.
        path: PathBuf,
        /// What is in it.
        file: &'static str,
    },
    /// The kernel's tracing can't be used as asked.
    #[error(transparent)]
    Tracefs(#[from] TracefsError),
    /// Hypercalls can't be collected.
    #[error("cannot collect hypercalls")]
    Collect(#[from] bpf::collector::CollectError),
    /// Nothing can be sampled.
    #[error("cannot sample CPUs")]
    Sample(#[from] sampler::SampleError),
    /// A guest that can't be recorded.
    #[error("cannot record the guest {name}")]
    Guest {
        /// Its name.
        name: String,
        /// What happened.
        source: io::Error,
    },
    /// A place where guests can't be waited for.
    #[error("cannot listen on {address}")]
    Listen {
        /// The place.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// A guest that is not known, or not reached.
    #[error(transparent)]
    NoGuest(#[from] vms::NoGuest),
    /// A VM that is not there.
    #[error("no VM {name} runs here{}", running(vms))]
    NoSuchVm {
        /// Its name or process id.
        name: String,
        /// Those that run.
        vms: Vec<String>,
    },
    /// Something that several VMs say is theirs.
    #[error(transparent)]
    Ambiguous(#[from] vms::Ambiguous),
    /// Somebody ended it before it had begun.
    #[error("stopped before anything was recorded")]
    Interrupted,
    /// Somebody had it leave what it wrote, a second time.
    #[error("stopped twice: the recording keeps the data written so far")]
    StoppedAgain,
    /// Something that makes no sense.
    #[error("{0}")]
    Usage(String),
}

/// The recorder's results.
pub type Result<T> = std::result::Result<T, RecordError>;

impl RecordError {
    /// For `map_err`: a failed operation on a file.
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }
}

fn running(vms: &[String]) -> String {
    if vms.is_empty() {
        "; none is running".into()
    } else {
        format!("; running: {}", vms.join(", "))
    }
}

/// Two guests would be recorded under one name.
pub(crate) fn same_name(name: &str) -> RecordError {
    RecordError::Usage(format!("two guests have the name {name}: write NAME=CHANNEL"))
}
