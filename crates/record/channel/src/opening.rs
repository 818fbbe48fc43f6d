//! How a connection begins: the first message declares its purpose.

use std::io;

use crate::stream::Stream;

/// A message stream whose first message declares the connection's purpose.
pub trait Opening: Sized {
    /// The first message, decoded.
    type First;

    /// Wraps a byte stream.
    fn over(stream: Stream) -> Self;

    /// Reads the first message without waiting; `None` until it is complete.
    ///
    /// # Errors
    /// When the peer is gone, or sends invalid bytes.
    fn hear_first(&mut self) -> io::Result<Option<Self::First>>;

    fn stream(&self) -> Option<&Stream>;
}
