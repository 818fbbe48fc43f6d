//! A control stream: messages over a stream of bytes.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use wire::{ControlDecoder, Message, encode};

use crate::stream::{Stream, Wait};

/// Bytes read at once.
const READ_BYTES: usize = 8 << 10;
/// How long the other side may take nothing before it is taken for gone.
const PATIENCE: Duration = Duration::from_secs(10);

/// What came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A message of a session.
    Message(u64, Message),
    /// Nothing, for as long as one was to wait.
    Nothing,
    /// The other side is gone.
    End,
}

/// A control stream.
#[derive(Debug)]
pub struct Control {
    stream: Stream,
    decoder: ControlDecoder,
    buffer: Box<[u8; READ_BYTES]>,
}

impl Control {
    /// The control stream that a stream carries.
    #[must_use]
    pub fn new(stream: Stream) -> Self {
        Self { stream, decoder: ControlDecoder::new(), buffer: Box::new([0; READ_BYTES]) }
    }

    /// Sends a message.
    ///
    /// # Errors
    /// When the other side is gone or takes nothing, or the message is too long for one.
    pub fn send(&mut self, session: u64, message: &Message) -> io::Result<()> {
        let bytes = encode(session, message)
            .ok_or_else(|| io::Error::other("a message is longer than any may be"))?;
        self.stream.write_all(&bytes, Wait::at_most(PATIENCE))
    }

    /// Waits for a message.
    ///
    /// # Errors
    /// When the stream fails.
    pub fn receive(&mut self, wait: Wait<'_>) -> io::Result<Heard> {
        loop {
            if let Some((session, message)) = self.decoder.next() {
                return Ok(Heard::Message(session, message));
            }
            match self.stream.read(&mut *self.buffer, wait) {
                Ok(0) => return Ok(Heard::End),
                Ok(read) => self.decoder.push(self.buffer.get(..read).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    return Ok(self.after_silence());
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The rest of a message that does not come was somebody's who is gone.
    fn after_silence(&mut self) -> Heard {
        self.decoder.give_up();
        match self.decoder.next() {
            Some((session, message)) => Heard::Message(session, message),
            None => Heard::Nothing,
        }
    }

    /// The stream itself, after its first message has told that it is a page stream. Whoever makes
    /// one sends nothing more before it is asked to.
    #[must_use]
    pub fn into_stream(self) -> Stream {
        self.stream
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
