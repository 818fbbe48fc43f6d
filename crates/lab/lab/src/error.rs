//! Errors of the lab, and how to fix them.

use std::io;
use std::path::{Path, PathBuf};

use labguest::wire::FrameError;

use crate::watch::StandsStill;

/// The lab's errors. Their texts end with what to do.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// An operation on a file or folder failed.
    #[error("{what} {}", path.display())]
    Io {
        /// The operation: "cannot write".
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Something that the lab needs is missing.
    #[error("{what} is missing; {mend}")]
    Missing {
        /// Its name.
        what: String,
        /// A command that fixes it.
        mend: String,
    },
    /// There is not enough memory or disk space.
    #[error("too little {what}: {available_mib} MiB are free, {needed_mib} MiB are needed; {mend}")]
    TooLittle {
        /// The resource, and its place.
        what: String,
        /// Available amount.
        available_mib: u64,
        /// Required amount.
        needed_mib: u64,
        /// How to fix it.
        mend: &'static str,
    },
    /// A program that the lab runs failed.
    #[error("`{command}` failed{}", tail(output))]
    Command {
        /// The program and its arguments.
        command: String,
        /// The end of its output.
        output: String,
    },
    /// A machine did not boot, or stopped answering.
    #[error("level {level} {what}{}", tail(console))]
    Machine {
        /// The machine's level.
        level: u8,
        /// What happened.
        what: String,
        /// The end of its console.
        console: String,
    },
    /// A guest hangs, as emulated ones sometimes do, or has ended: docs/lab.md.
    #[error("level {level} {what}{}", tail(console))]
    Hangs {
        /// The guest's level.
        level: u8,
        /// What happened.
        what: String,
        /// The end of its console.
        console: String,
    },
    /// The session with a machine broke.
    #[error("level {level} does not answer")]
    Channel {
        /// The machine's level.
        level: u8,
        /// The error.
        source: labguest::wire::FrameError,
    },
    /// A machine refused a request.
    #[error("level {level}: {text}")]
    Refused {
        /// The machine's level.
        level: u8,
        /// The machine's reason.
        text: String,
    },
    /// The request is invalid in this state.
    #[error("{0}")]
    Usage(String),
    /// QEMU's monitor refused a command, or its connection broke.
    #[error("QEMU's monitor: {0}")]
    Monitor(String),
}

pub type Result<T> = std::result::Result<T, LabError>;

impl LabError {
    /// Whether a guest hangs: a retry with a new guest may succeed.
    #[must_use]
    pub fn is_hang(&self) -> bool {
        matches!(self, Self::Hangs { .. })
    }

    /// The error of a broken session.
    pub(crate) fn of_channel(level: u8, source: FrameError) -> Self {
        let FrameError::Io(error) = &source else { return Self::Channel { level, source } };
        let found = error.get_ref().and_then(|error| error.downcast_ref::<StandsStill>());
        match found.cloned() {
            Some(StandsStill { level, what }) => {
                Self::Hangs { level, what, console: String::new() }
            }
            None => Self::Channel { level, source },
        }
    }

    /// For `map_err`: a failed operation on a file.
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }

    /// Something is missing; `mend` tells how to fix it.
    pub(crate) fn missing(what: impl Into<String>, mend: impl Into<String>) -> Self {
        Self::Missing { what: what.into(), mend: mend.into() }
    }
}

/// Text that follows a message on separate lines.
fn tail(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!("\n  {}", text.trim_end().replace('\n', "\n  "))
    }
}

/// The last lines of a text.
pub(crate) fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines.get(lines.len().saturating_sub(count)..).unwrap_or_default().join("\n")
}
