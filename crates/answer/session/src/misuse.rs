//! Recordings that can't belong together: each can be read, but not what was asked of them.

/// What is wrong with the files of a command line, in a sentence. The command ends with code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Misuse(pub String);
