//! A control stream: messages over a stream of bytes.

use std::io;
use std::time::Duration;

use wire::{ControlDecoder, Message, encode};

use crate::memory::ControlRings;
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

/// What carries a control stream.
#[derive(Debug)]
enum Carrier {
    Stream(Stream),
    Rings(Box<ControlRings>),
}

/// A control stream.
#[derive(Debug)]
pub struct Control {
    carrier: Carrier,
    decoder: ControlDecoder,
    buffer: Box<[u8; READ_BYTES]>,
}

impl Control {
    /// The control stream that a stream carries.
    #[must_use]
    pub fn new(stream: Stream) -> Self {
        Self::over(Carrier::Stream(stream))
    }

    /// The control stream in shared memory.
    #[must_use]
    pub fn in_memory(rings: ControlRings) -> Self {
        Self::over(Carrier::Rings(Box::new(rings)))
    }

    fn over(carrier: Carrier) -> Self {
        Self { carrier, decoder: ControlDecoder::new(), buffer: Box::new([0; READ_BYTES]) }
    }

    /// Sends a message.
    ///
    /// # Errors
    /// When the other side is gone or takes nothing, or the message is too long for one.
    pub fn send(&mut self, session: u64, message: &Message) -> io::Result<()> {
        let bytes = encode(session, message)
            .ok_or_else(|| io::Error::other("a message is longer than any may be"))?;
        let wait = Wait::at_most(PATIENCE);
        match &mut self.carrier {
            Carrier::Stream(stream) => stream.write_all(&bytes, wait),
            Carrier::Rings(rings) => rings.write_all(&bytes, wait),
        }
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
            let read = match &mut self.carrier {
                Carrier::Stream(stream) => stream.read(&mut *self.buffer, wait),
                Carrier::Rings(rings) => rings.read(&mut *self.buffer, wait),
            };
            match read {
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

    /// The stream itself, after its first message has told that it is a page stream; none in shared
    /// memory. Whoever makes one sends nothing more before it is asked to.
    #[must_use]
    pub fn into_stream(self) -> Option<Stream> {
        match self.carrier {
            Carrier::Stream(stream) => Some(stream),
            Carrier::Rings(_) => None,
        }
    }
}
