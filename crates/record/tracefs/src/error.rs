//! Errors of tracefs, and what the user can do about them.

use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum TracefsError {
    /// An operation on a tracefs file failed.
    #[error("cannot {what} {}", path.display())]
    Io {
        /// The operation: "write".
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The user has no permission to trace.
    #[error(
        "tracing needs root: use sudo, or grant CAP_DAC_OVERRIDE (also CAP_SYS_ADMIN if tracefs is not mounted)"
    )]
    NotAllowed,
    /// The kernel has no tracefs.
    #[error("this kernel has no tracefs: it was built without CONFIG_TRACING")]
    NoTracefs,
    /// No event has this name.
    #[error("unknown event {name}{}", did_you_mean(similar))]
    NoSuchEvent {
        name: String,
        /// Similar names that exist.
        similar: Vec<String>,
    },
    /// Neither events nor functions were requested.
    #[error("no event was selected")]
    NothingChosen,
    /// A function that can't be probed.
    #[error("no function {name} can be probed{}", did_you_mean(similar))]
    NoSuchFunction {
        name: String,
        /// Similar functions that exist.
        similar: Vec<String>,
    },
    /// The text does not have the syntax of a probe.
    #[error("{probe:?} is not a probe: {why}; write FUNCTION [ARGUMENTS]")]
    NotAProbe {
        /// The probe as requested.
        probe: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The kernel refused a probe.
    #[error("the kernel refuses the probe '{probe}'")]
    Probe {
        /// The probe as requested.
        probe: String,
        /// The system's error.
        source: io::Error,
    },
    /// The kernel lacks this tracer.
    #[error("this kernel has no tracer {name}: it was built without it")]
    NoSuchTracer { name: &'static str },
    /// No function matches the pattern.
    #[error("the kernel can't trace any function '{pattern}'")]
    Functions {
        /// The pattern as requested.
        pattern: String,
        /// The system's error.
        source: io::Error,
    },
    /// The top-level buffers are in use.
    #[error(
        "function_graph needs the kernel's own buffers here, but another program uses them: see current_tracer and set_event in tracefs"
    )]
    TopLevelInUse,
    /// The kernel lacks this clock.
    #[error("unknown clock {name}: use one of {available}")]
    NoSuchClock {
        name: String,
        /// The available clocks, separated by commas.
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

/// The end of an error message about an unknown name: lists [`similar`](crate::similar) names.
#[must_use]
pub fn did_you_mean(similar: &[String]) -> String {
    if similar.is_empty() {
        String::new()
    } else {
        format!("; did you mean {}?", similar.join(", "))
    }
}
