//! A control stream: messages over a stream of bytes.

use std::io;
use std::time::Duration;

use crate::wire::{ControlDecoder, Message, encode};

use crate::memory::ControlRings;
use crate::opening::Opening;
use crate::stream::Stream;
use os::waits::Wait;

/// Size of a read.
const READ_BYTES: usize = 8 << 10;
/// Max time for a peer to accept a message before it counts as gone.
const PATIENCE: Duration = Duration::from_secs(10);
/// Max reads per call, so that an endless stream can't block the caller.
const READS_A_LOOK: usize = 16;
/// Max bytes before the first message is complete: twice the longest message.
const MAX_FIRST_BYTES: usize = 64 << 10;

/// A result of waiting for a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// A message with its session.
    Message(u64, Message),
    /// Nothing arrived in time.
    Timeout,
    /// The peer is gone.
    Closed,
}

/// The transport of a control stream.
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
    /// Bytes received before the first message.
    first_bytes: usize,
}

impl Control {
    /// A control stream over a byte stream.
    #[must_use]
    pub fn new(stream: Stream) -> Self {
        Self::over(Carrier::Stream(stream))
    }

    /// A control stream in shared memory.
    #[must_use]
    pub fn in_memory(rings: ControlRings) -> Self {
        Self::over(Carrier::Rings(Box::new(rings)))
    }

    fn over(carrier: Carrier) -> Self {
        let (decoder, buffer) = (ControlDecoder::new(), Box::new([0; READ_BYTES]));
        Self { carrier, decoder, buffer, first_bytes: 0 }
    }

    /// Sends a message with the default timeout.
    ///
    /// # Errors
    /// When the peer is gone or does not read, or the message is too long.
    pub fn send(&mut self, session: u64, message: &Message) -> io::Result<()> {
        self.send_within(session, message, Wait::at_most(PATIENCE))
    }

    /// Sends a message. After a partial send the peer can't decode what follows.
    ///
    /// # Errors
    /// As [`Control::send`].
    pub fn send_within(
        &mut self,
        session: u64,
        message: &Message,
        wait: Wait<'_>,
    ) -> io::Result<()> {
        let bytes =
            encode(session, message).ok_or_else(|| io::Error::other("a message is too long"))?;
        match &mut self.carrier {
            Carrier::Stream(stream) => stream.write_all(&bytes, wait),
            Carrier::Rings(rings) => rings.write_all(&bytes, wait),
        }
    }

    /// Sends a request to an agent and waits for the answer: the session's first message from which `extract` gets a
    /// value. `closed` is the error text if the agent closes the channel instead.
    ///
    /// # Errors
    /// When the agent refuses (with its reason), does not answer in time, or closes the channel.
    pub fn ask<T>(
        &mut self,
        session: u64,
        message: &Message,
        wait: Wait<'_>,
        closed: &str,
        extract: impl Fn(Message) -> Option<T>,
    ) -> io::Result<T> {
        self.send_within(session, message, wait)?;
        loop {
            match self.receive(wait)? {
                Received::Message(message_session, Message::Refused(why))
                    if message_session == session =>
                {
                    return Err(io::Error::other(why));
                }
                Received::Message(message_session, message) => {
                    let answer =
                        Some(message).filter(|_| message_session == session).and_then(&extract);
                    if let Some(answer) = answer {
                        return Ok(answer);
                    }
                }
                Received::Closed => return Err(io::Error::other(closed)),
                Received::Timeout => return Err(nobody_answers()),
            }
            // Skips what an earlier host left unread.
            if wait.is_over() {
                return Err(nobody_answers());
            }
        }
    }

    /// Waits for a message. Bytes that form no message do not extend the wait.
    ///
    /// # Errors
    /// When the stream fails.
    pub fn receive(&mut self, wait: Wait<'_>) -> io::Result<Received> {
        let mut any = false;
        loop {
            if let Some((session, message)) = self.decoder.next() {
                return Ok(Received::Message(session, message));
            }
            if any && wait.is_over() {
                return Ok(Received::Timeout);
            }
            let read = match &mut self.carrier {
                Carrier::Stream(stream) => stream.read(&mut *self.buffer, wait),
                Carrier::Rings(rings) => rings.read(&mut *self.buffer, wait),
            };
            match read {
                Ok(0) => return Ok(Received::Closed),
                Ok(read) => {
                    any = true;
                    self.decoder.push(self.buffer.get(..read).unwrap_or_default());
                }
                // A message in transit extends the wait while its bytes arrive. A caller with a zero timeout does not
                // wait for the rest.
                Err(error)
                    if error.kind() == io::ErrorKind::TimedOut
                        && (any || !wait.remaining().is_zero()) =>
                {
                    return Ok(Received::Timeout);
                }
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    return Ok(self.after_silence());
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns a message that has arrived, without waiting; `None` if none is complete. A partial message is kept.
    ///
    /// # Errors
    /// When the stream fails.
    pub fn look(&mut self) -> io::Result<Option<Received>> {
        let at_once = Wait::at_most(Duration::ZERO);
        for _ in 0..READS_A_LOOK {
            if let Some((session, message)) = self.decoder.next() {
                return Ok(Some(Received::Message(session, message)));
            }
            let read = match &mut self.carrier {
                Carrier::Stream(stream) => stream.read(&mut *self.buffer, at_once),
                Carrier::Rings(rings) => rings.read(&mut *self.buffer, at_once),
            };
            match read {
                Ok(0) => return Ok(Some(Received::Closed)),
                Ok(read) => self.decoder.push(self.buffer.get(..read).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::TimedOut => break,
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// A message whose rest is missing came from a peer that disconnected.
    fn after_silence(&mut self) -> Received {
        self.decoder.give_up();
        match self.decoder.next() {
            Some((session, message)) => Received::Message(session, message),
            None => Received::Timeout,
        }
    }

    /// The stream itself, once its first message shows that it is a page stream; `None` for shared memory. The peer
    /// sends nothing more on it before it is asked to.
    #[must_use]
    pub fn into_stream(self) -> Option<Stream> {
        match self.carrier {
            Carrier::Stream(stream) => Some(stream),
            Carrier::Rings(_) => None,
        }
    }
}

fn nobody_answers() -> io::Error {
    let text = "no answer: is hyperscope-agent running in the guest?";
    io::Error::new(io::ErrorKind::TimedOut, text)
}

impl Opening for Control {
    /// The session, and the message.
    type First = (u64, Message);

    fn over(stream: Stream) -> Self {
        Self::new(stream)
    }

    /// Closes a stream that has sent more bytes than the longest message without a complete one.
    fn hear_first(&mut self) -> io::Result<Option<(u64, Message)>> {
        let Carrier::Stream(stream) = &self.carrier else { return Ok(None) };
        loop {
            if let Some(first) = self.decoder.next() {
                return Ok(Some(first));
            }
            if self.first_bytes > MAX_FIRST_BYTES {
                return Err(io::ErrorKind::InvalidData.into());
            }
            match stream.read(&mut *self.buffer, Wait::at_most(Duration::ZERO)) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    self.first_bytes += read;
                    self.decoder.push(self.buffer.get(..read).unwrap_or_default());
                }
                Err(error) if error.kind() == io::ErrorKind::TimedOut => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    fn stream(&self) -> Option<&Stream> {
        match &self.carrier {
            Carrier::Stream(stream) => Some(stream),
            Carrier::Rings(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::time::Instant;

    use super::*;
    use os::waits::Signal;

    /// A control stream whose peer writes these bytes repeatedly until the stream is closed.
    fn spoken_to(bytes: &'static [u8], pause: Duration) -> Control {
        let (here, mut there) = UnixStream::pair().unwrap();
        std::thread::spawn(move || {
            while there.write_all(bytes).is_ok() {
                std::thread::sleep(pause);
            }
        });
        Control::new(Stream::new(here).unwrap())
    }

    #[test]
    fn bytes_that_are_no_message_make_nobody_wait_longer() {
        for (bytes, pause) in
            [(&b"x"[..], Duration::from_millis(20)), (&[b'x'; 4096], Duration::ZERO)]
        {
            let mut control = spoken_to(bytes, pause);
            let start = Instant::now();
            let received = control.receive(Wait::at_most(Duration::from_millis(300))).unwrap();
            assert_eq!(received, Received::Timeout);
            assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
        }
    }

    #[test]
    fn a_flood_of_bytes_hides_no_signal() {
        let mut control = spoken_to(&[b'x'; 4096], Duration::ZERO);
        let stop = Signal::new().unwrap();
        stop.set();
        let wait = Duration::from_secs(60);
        let received = control.receive(Wait::at_most(wait).or(&[stop.fd()])).unwrap();
        assert_eq!(received, Received::Timeout);
    }

    #[test]
    fn a_look_keeps_a_part_of_a_message_and_sees_the_end() {
        let (here, mut there) = UnixStream::pair().unwrap();
        let mut control = Control::new(Stream::new(here).unwrap());
        let message = Message::Refused("busy".into());
        let bytes = encode(7, &message).unwrap();
        there.write_all(&bytes[..5]).unwrap();
        assert_eq!(control.look().unwrap(), None);
        there.write_all(&bytes[5..]).unwrap();
        drop(there);
        assert_eq!(control.look().unwrap(), Some(Received::Message(7, message)));
        assert_eq!(control.look().unwrap(), Some(Received::Closed));
        let mut flooded = spoken_to(&[b'x'; 4096], Duration::ZERO);
        assert_eq!(flooded.look().unwrap(), None);
    }

    #[test]
    fn a_message_that_comes_slowly_comes() {
        let (here, mut there) = UnixStream::pair().unwrap();
        let mut control = Control::new(Stream::new(here).unwrap());
        let message = Message::Refused("busy".into());
        let bytes = encode(7, &message).unwrap();
        for byte in bytes {
            there.write_all(&[byte]).unwrap();
            let received = control.receive(Wait::at_most(Duration::from_millis(1))).unwrap();
            if received != Received::Timeout {
                return assert_eq!(received, Received::Message(7, message));
            }
        }
        panic!("it did not come");
    }
}
