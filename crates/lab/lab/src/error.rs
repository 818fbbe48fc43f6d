//! Why the lab can't do what was asked, and what would mend it.

use std::io;
use std::path::{Path, PathBuf};

use labguest::wire::FrameError;

use crate::watch::StandsStill;

/// The lab's errors. Their texts end with what to do.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A file or folder of the lab's own failed.
    #[error("{what} {}", path.display())]
    Io {
        /// What was tried: "cannot write".
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Something the lab needs is not there.
    #[error("{what} is missing; {mend}")]
    Missing {
        /// What.
        what: String,
        /// The command that would mend it.
        mend: String,
    },
    /// There is too little of something.
    #[error("too little {what}: {available_mib} MiB are free, {needed_mib} MiB are needed; {mend}")]
    TooLittle {
        /// Of what, and where.
        what: String,
        /// What there is.
        available_mib: u64,
        /// What there must be.
        needed_mib: u64,
        /// What would mend it.
        mend: &'static str,
    },
    /// A program the lab runs failed.
    #[error("`{command}` failed{}", tail(output))]
    Command {
        /// The program and its arguments.
        command: String,
        /// The end of what it said.
        output: String,
    },
    /// A machine did not come up, or stopped answering.
    #[error("level {level} {what}{}", tail(console))]
    Machine {
        /// Which.
        level: u8,
        /// What happened to it.
        what: String,
        /// The end of its console.
        console: String,
    },
    /// A guest stands still, as emulated ones do now and then, or is gone: docs/lab.md.
    #[error("level {level} {what}{}", tail(console))]
    Hangs {
        /// Which.
        level: u8,
        /// How.
        what: String,
        /// The end of its console.
        console: String,
    },
    /// The session with a machine broke.
    #[error("level {level} does not answer")]
    Channel {
        /// Which.
        level: u8,
        /// How.
        source: labguest::wire::FrameError,
    },
    /// A machine refused a request.
    #[error("level {level}: {text}")]
    Refused {
        /// Which.
        level: u8,
        /// Why, in its words.
        text: String,
    },
    /// A request that makes no sense in this state.
    #[error("{0}")]
    Usage(String),
    /// QEMU's monitor refused a command, or broke.
    #[error("QEMU's monitor: {0}")]
    Monitor(String),
}

/// The lab's results.
pub type Result<T> = std::result::Result<T, LabError>;

impl LabError {
    /// Whether a guest hangs: what was done may go well in one that is begun again.
    #[must_use]
    pub fn is_hang(&self) -> bool {
        matches!(self, Self::Hangs { .. })
    }

    /// Why the session with a machine broke.
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

    /// Something is missing, and what would mend it.
    pub(crate) fn missing(what: impl Into<String>, mend: impl Into<String>) -> Self {
        Self::Missing { what: what.into(), mend: mend.into() }
    }
}

/// Text that follows a message on lines of its own.
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
