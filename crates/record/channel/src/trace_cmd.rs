//! trace-cmd's messages over a stream of bytes.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use crate::wire::trace_cmd::{MAX_BYTES, Message, ReadError, decode, encode};
use rustix::net::sockopt::set_tcp_quickack;

use crate::opening::Opening;
use crate::stream::Stream;
use os::waits::Wait;

/// Default timeout of a send.
const PATIENCE: Duration = Duration::from_secs(10);

/// A stream of trace-cmd's messages.
#[derive(Debug)]
pub struct TraceCmd {
    stream: Stream,
    /// A partial message; at most one message.
    bytes: Vec<u8>,
    room: Box<[u8; MAX_BYTES]>,
    /// See [`TraceCmd::prompt`].
    is_prompt: bool,
    patience: Duration,
}

impl TraceCmd {
    /// Wraps a byte stream.
    #[must_use]
    pub fn new(stream: Stream) -> Self {
        let room = Box::new([0; MAX_BYTES]);
        Self { stream, bytes: Vec::new(), room, is_prompt: false, patience: PATIENCE }
    }

    /// Sends each message without delay, for round trips that are timed. trace-cmd sends a message in parts, and TCP
    /// holds back the later ones until the first is acknowledged, which would take 40 ms each time.
    #[must_use]
    pub fn prompt(self) -> Self {
        Self { is_prompt: true, ..self }
    }

    /// Max time for the peer to accept a message before it counts as gone.
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// Sends a message with the configured timeout.
    ///
    /// # Errors
    /// When the peer is gone or does not read, or the message is too long.
    pub fn send(&mut self, message: &Message) -> io::Result<()> {
        self.send_within(message, Wait::at_most(self.patience))
    }

    /// Sends a message. After a partial send the peer can't decode what follows.
    ///
    /// # Errors
    /// As [`TraceCmd::send`].
    pub fn send_within(&mut self, message: &Message, wait: Wait<'_>) -> io::Result<()> {
        self.stream.write_all(&encode(message)?, wait)
    }

    /// Waits for a message; `None` on timeout. A partial message is kept for the next call.
    ///
    /// # Errors
    /// When the peer is gone, or sends invalid bytes.
    pub fn receive(&mut self, wait: Wait<'_>) -> Result<Option<Message>, ReadError> {
        let mut any = false;
        loop {
            if let Some((message, length)) = decode(&self.bytes)? {
                self.bytes.drain(..length);
                return Ok(Some(message));
            }
            if any && wait.is_over() {
                return Ok(None);
            }
            if self.is_prompt {
                // The kernel resets it after a while. It fails on other sockets than TCP, which need none.
                let _ = set_tcp_quickack(&self.stream, true);
            }
            match self.stream.read(&mut *self.room, wait) {
                Ok(0) => return Err(ReadError::Closed),
                Ok(read) => {
                    any = true;
                    self.bytes.extend(self.room.get(..read).unwrap_or_default());
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::TimedOut => return Ok(None),
                    io::ErrorKind::ConnectionReset => return Err(ReadError::Closed),
                    _ => return Err(ReadError::Io(error)),
                },
            }
        }
    }
}

impl Opening for TraceCmd {
    type First = Message;

    fn over(stream: Stream) -> Self {
        Self::new(stream)
    }

    fn hear_first(&mut self) -> io::Result<Option<Message>> {
        self.receive(Wait::at_most(Duration::ZERO)).map_err(|error| match error {
            ReadError::Io(error) => error,
            other => io::Error::other(other),
        })
    }

    fn stream(&self) -> Option<&Stream> {
        Some(&self.stream)
    }
}

impl AsFd for TraceCmd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use crate::wire::trace_cmd::{Request, TimeSync};

    use super::*;

    const SHORT: Duration = Duration::from_millis(20);

    #[test]
    fn messages_come_whole_however_they_are_cut() {
        let (here, there) = UnixStream::pair().unwrap();
        let mut here = TraceCmd::new(Stream::new(here).unwrap());
        let there = Stream::new(there).unwrap();
        let request =
            Request { arguments: vec!["-e".into(), "sched".into()], ..Request::default() };
        let messages = [
            Message::Request(request),
            Message::TimeSync(TimeSync::probe(1)),
            Message::Data(vec![7; crate::wire::trace_cmd::MAX_DATA_BYTES]),
            Message::Close,
        ];
        let all: Vec<u8> = messages.iter().flat_map(|message| encode(message).unwrap()).collect();
        let (first, rest) = all.split_at(20);
        there.write_all(first, Wait::at_most(SHORT)).unwrap();
        assert_eq!(here.receive(Wait::at_most(SHORT)).unwrap(), None);
        there.write_all(rest, Wait::at_most(SHORT)).unwrap();
        for message in messages {
            assert_eq!(here.receive(Wait::at_most(SHORT)).unwrap(), Some(message));
        }
        here.send(&Message::CloseResponse).unwrap();
        let mut got = [0; 100];
        assert_eq!(there.read(&mut got, Wait::at_most(SHORT)).unwrap(), 12);
        drop(there);
        assert!(matches!(here.receive(Wait::at_most(SHORT)), Err(ReadError::Closed)));
    }

    #[test]
    fn what_is_no_message_is_an_error_at_once() {
        let (here, there) = UnixStream::pair().unwrap();
        let mut here = TraceCmd::new(Stream::new(here).unwrap());
        let there = Stream::new(there).unwrap();
        there.write_all(b"GET / HTTP/1.1\r\n", Wait::at_most(SHORT)).unwrap();
        let error = here.receive(Wait::at_most(SHORT)).unwrap_err();
        assert!(error.to_string().contains("not trace-cmd's protocol"), "{error}");
    }
}
