//! Why a file can't be opened for reading: the file and what happened, apart, so that a message that has named the
//! file does not name it again.

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};

/// A file could not be opened for reading.
#[derive(Debug)]
pub struct OpenError {
    /// The file.
    pub path: PathBuf,
    /// What happened.
    pub fault: OpenFault,
}

/// What happened to a file that could not be opened.
#[derive(Debug)]
pub enum OpenFault {
    /// The system refused, and said this.
    Io(std::io::Error),
    Directory,
    /// A pipe, or what a file unpacks to, delivered more than [`bound_spool`](crate::bound_spool) allows: this many
    /// bytes.
    TooLong(u64),
}

/// A message about a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SaidOfFile {
    /// It can't be read; the cause says why.
    CannotRead,
    /// The rest of a sentence that begins with the file: "is empty".
    Is(String),
    /// What follows the file and a colon.
    Says(String),
    /// Nothing: the cause says all.
    Cause,
}

impl SaidOfFile {
    /// The message, with the file's name in it.
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

    /// The message after one that has named the file, with its cause.
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
    /// The message about a file with this fault.
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

    /// What is behind it.
    #[must_use]
    pub fn cause(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Io(source) => Some(source),
            Self::Directory | Self::TooLong(_) => None,
        }
    }
}

impl OpenError {
    /// For `map_err`: the system's error for a file.
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
