//! Why nothing can be recorded, or not all of it, and what would mend that.

use std::io;
use std::path::{Path, PathBuf};

/// The recorder's errors.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A file of tracefs or of the session failed.
    #[error("cannot {what} {}", path.display())]
    Io {
        /// What was tried: "write".
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// This user may not trace.
    #[error("tracing needs root: run it with sudo, or give it CAP_SYS_ADMIN and CAP_DAC_OVERRIDE")]
    NotAllowed,
    /// The kernel has no tracefs.
    #[error("this kernel has no tracefs: it was built without CONFIG_TRACING")]
    NoTracefs,
    /// A name that no event has.
    #[error("there is no event {name}{}", did_you_mean(similar))]
    NoSuchEvent {
        /// The name.
        name: String,
        /// Names that are there and look like it.
        similar: Vec<String>,
    },
    /// A function that can't be probed.
    #[error("there is no function {name} that can be probed{}", did_you_mean(similar))]
    NoSuchFunction {
        /// The name.
        name: String,
        /// Functions that are there and look like it.
        similar: Vec<String>,
    },
    /// The kernel refused a probe.
    #[error("the kernel refuses the probe '{probe}'")]
    Probe {
        /// As it was asked for.
        probe: String,
        /// What the system said.
        source: io::Error,
    },
    /// A VM that is not there.
    #[error("there is no VM {name} here{}", running(vms))]
    NoSuchVm {
        /// Its name or process id.
        name: String,
        /// Those that run.
        vms: Vec<String>,
    },
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

fn did_you_mean(similar: &[String]) -> String {
    if similar.is_empty() {
        String::new()
    } else {
        format!("; did you mean {}?", similar.join(", "))
    }
}

fn running(vms: &[String]) -> String {
    if vms.is_empty() {
        "; none is running".into()
    } else {
        format!("; running: {}", vms.join(", "))
    }
}
