//! Why a file cannot be opened for reading, with path and fault separate, so that a message need
//! not repeat the path.

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};

/// A file cannot be opened for reading.
#[derive(Debug)]
pub struct OpenError {
    /// The file.
    pub path: PathBuf,
    /// The fault.
    pub fault: OpenFault,
}

/// Why a file cannot be opened.
#[derive(Debug)]
pub enum OpenFault {
    /// The system's error.
    Io(std::io::Error),
    Directory,
    /// A pipe or a compressed file has more than this many bytes, the limit of
    /// [`bound_spool`](crate::bound_spool).
    TooLong(u64),
}

/// A message about a file, without its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SaidOfFile {
    /// It cannot be read; the cause has the reason.
    CannotRead,
    /// A predicate, such as "is empty".
    Is(String),
    /// Text after the path and a colon.
    Says(String),
    /// Only the cause.
    Cause,
}

impl SaidOfFile {
    /// The message with the path.
    #[must_use]
    pub fn with_path(&self, path: &Path) -> String {
        let path = path.display();
        match self {
            Self::CannotRead => format!("cannot read {path}"),
            Self::Is(what) => format!("{path} {what}"),
            Self::Says(what) => format!("{path}: {what}"),
            Self::Cause => path.to_string(),
        }
    }

    /// The message and its cause, for a context that has already mentioned the path.
    #[must_use]
    pub fn without_path(&self, cause: Option<&dyn Error>) -> String {
        let text = match self {
            Self::CannotRead => "cannot be read",
            Self::Is(what) => &format!("it {what}"),
            Self::Says(what) => what,
            Self::Cause => "",
        };
        match cause {
            Some(cause) if text.is_empty() => cause.to_string(),
            Some(cause) => format!("{text}: {cause}"),
            None => text.to_owned(),
        }
    }
}

impl OpenFault {
    /// The message for this fault.
    #[must_use]
    pub fn describe(&self) -> SaidOfFile {
        match self {
            Self::Io(_) => SaidOfFile::CannotRead,
            Self::Directory => SaidOfFile::Is("is a directory".to_owned()),
            Self::TooLong(limit) => SaidOfFile::Is(format!(
                "is a pipe or compressed, and yields more than the {limit} bytes that --max-spool allows: save \
                 it unpacked to a file, or give a larger --max-spool"
            )),
        }
    }

    /// The underlying error.
    #[must_use]
    pub fn cause(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Io(source) => Some(source),
            Self::Directory | Self::TooLong(_) => None,
        }
    }
}

impl OpenError {
    /// Wraps the system's error for a file; for `map_err`.
    pub fn io(path: &Path) -> impl Fn(std::io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self { path: path.clone(), fault: OpenFault::Io(source) }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fault.describe().with_path(&self.path))
    }
}

impl Error for OpenError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.fault.cause()
    }
}
