//! Why the kernel's tracing can't be used as asked, and what would mend that.

use std::io;
use std::path::{Path, PathBuf};

/// Errors of tracefs.
#[derive(Debug, thiserror::Error)]
pub enum TracefsError {
    /// A file of tracefs failed.
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
    #[error(
        "tracing needs root: use sudo, or grant CAP_DAC_OVERRIDE (also CAP_SYS_ADMIN if tracefs is not mounted)"
    )]
    NotAllowed,
    /// The kernel has no tracefs.
    #[error("this kernel has no tracefs: it was built without CONFIG_TRACING")]
    NoTracefs,
    /// A name that no event has.
    #[error("unknown event {name}{}", did_you_mean(similar))]
    NoSuchEvent {
        /// The name.
        name: String,
        /// Names that are there and look like it.
        similar: Vec<String>,
    },
    /// Neither events nor functions were asked for.
    #[error("no event was selected")]
    NothingChosen,
    /// A function that can't be probed.
    #[error("no function {name} can be probed{}", did_you_mean(similar))]
    NoSuchFunction {
        /// The name.
        name: String,
        /// Functions that are there and look like it.
        similar: Vec<String>,
    },
    /// What is not written as a probe is.
    #[error("{probe:?} is not a probe: {why}; write FUNCTION [ARGUMENTS]")]
    NotAProbe {
        /// As it was asked for.
        probe: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The kernel refused a probe.
    #[error("the kernel refuses the probe '{probe}'")]
    Probe {
        /// As it was asked for.
        probe: String,
        /// What the system said.
        source: io::Error,
    },
    /// A tracer that this kernel does not have.
    #[error("this kernel has no tracer {name}: it was built without it")]
    NoSuchTracer {
        /// Its name.
        name: &'static str,
    },
    /// Functions that there are none of.
    #[error("the kernel can't trace any function '{pattern}'")]
    Functions {
        /// As they were asked for.
        pattern: String,
        /// What the system said.
        source: io::Error,
    },
    /// The kernel's own buffers can't be borrowed.
    #[error(
        "function_graph needs the kernel's own buffers here, but another program uses them: see current_tracer and set_event in tracefs"
    )]
    TopLevelInUse,
    /// A clock that this kernel does not have.
    #[error("unknown clock {name}: use one of {available}")]
    NoSuchClock {
        /// The name.
        name: String,
        /// Those that are there, with commas between.
        available: String,
    },
}

pub type Result<T> = std::result::Result<T, TracefsError>;

impl TracefsError {
    /// For `map_err`: a failed operation on a file.
    pub fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }
}

/// The end of a message on a name that is not there: names that are [`similar`](crate::similar) to it.
#[must_use]
pub fn did_you_mean(similar: &[String]) -> String {
    if similar.is_empty() {
        String::new()
    } else {
        format!("; did you mean {}?", similar.join(", "))
    }
}
