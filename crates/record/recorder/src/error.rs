//! Errors of the recorder, and what the user can do about them.

use std::io;
use std::path::{Path, PathBuf};

use tracefs::TracefsError;

#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// An operation on a session's file failed.
    #[error("cannot {what} {}", path.display())]
    Io {
        /// The operation: "write".
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another recorder uses the session's folder.
    #[error("{holder} is recording into {}: stop it, or name another folder with -o", path.display())]
    SessionTaken {
        path: PathBuf,
        /// The other recorder.
        holder: String,
    },
    /// The flight recorder's folder of pages was removed.
    #[error("the folder {} was removed during recording: the recording is lost", path.display())]
    FolderRemoved { path: PathBuf },
    /// The folder contains a recording already.
    #[error("{} already holds a recording ({file}): name another folder with -o", path.display())]
    HoldsRecording {
        path: PathBuf,
        /// The file that shows it.
        file: &'static str,
    },
    /// Tracing failed.
    #[error(transparent)]
    Tracefs(#[from] TracefsError),
    /// Collecting hypercalls failed.
    #[error("cannot collect hypercalls")]
    Collect(#[from] bpf::collector::CollectError),
    /// Sampling failed.
    #[error("cannot sample CPUs")]
    Sample(#[from] sampler::SampleError),
    /// Recording a guest failed.
    #[error("cannot record the guest {name}")]
    Guest {
        /// The guest's name.
        name: String,
        source: io::Error,
    },
    /// Listening for guests failed.
    #[error("cannot listen on {address}")]
    Listen {
        address: String,
        /// The system's error.
        source: io::Error,
    },
    /// The guest is unknown or unreachable.
    #[error(transparent)]
    NoGuest(#[from] vms::NoGuest),
    /// No such VM runs.
    #[error("no VM {name} runs here{}", running(vms))]
    NoSuchVm {
        /// Its name or process id.
        name: String,
        /// The running VMs.
        vms: Vec<String>,
    },
    /// Several VMs claim the same name or channel.
    #[error(transparent)]
    Ambiguous(#[from] vms::Ambiguous),
    /// The recording was interrupted before it began.
    #[error("stopped before anything was recorded")]
    Interrupted,
    /// A second interrupt left the session unfinished.
    #[error("stopped twice: the recording keeps the data written so far")]
    StoppedAgain,
    /// The request is invalid.
    #[error("{0}")]
    Usage(String),
}

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

/// Two guests would have the same name.
pub(crate) fn same_name(name: &str) -> RecordError {
    RecordError::Usage(format!("two guests have the name {name}: write NAME=CHANNEL"))
}
