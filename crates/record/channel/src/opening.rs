//! How a connection begins: with a message that says what the other side wants.

use std::io;

use crate::stream::Stream;

/// Messages over a connection, the first of which says what the other side wants.
pub trait Opening: Sized {
    /// The first message, decoded.
    type First;

    /// The messages that a stream carries.
    fn over(stream: Stream) -> Self;

    /// The first message as far as it is there, without waiting; None until it is whole.
    ///
    /// # Errors
    /// When the other side is gone, or what it sends is no message.
    fn hear_first(&mut self) -> io::Result<Option<Self::First>>;

    fn stream(&self) -> Option<&Stream>;
}
