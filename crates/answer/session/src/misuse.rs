//! The error for recordings that can't belong together: each is readable, but the request makes no
//! sense.

/// The problem with the files of a command line, in a sentence. The command ends with code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Misuse(pub String);
