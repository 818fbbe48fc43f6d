//! Why a client's request failed.

use std::io;

use labguest::wire::FrameError;

/// Why a request failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The client is gone.
    Channel(FrameError),
    /// It can't be executed; the client gets the reason.
    Request(String),
}

impl From<FrameError> for Failure {
    fn from(error: FrameError) -> Self {
        Self::Channel(error)
    }
}

impl Failure {
    /// A failed write to the port.
    pub(crate) fn channel(error: io::Error) -> Self {
        Self::Channel(FrameError::Io(error))
    }
}
