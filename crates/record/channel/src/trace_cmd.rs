//! trace-cmd's messages over a stream of bytes.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use crate::wire::trace_cmd::{MAX_BYTES, Message, ReadError, decode, encode};
use rustix::net::sockopt::set_tcp_quickack;

use crate::opening::Opening;
use crate::stream::Stream;
use os::waits::Wait;

/// Default patience.
const PATIENCE: Duration = Duration::from_secs(10);

/// A stream of trace-cmd's messages.
#[derive(Debug)]
pub struct TraceCmd {
    stream: Stream,
    /// What was read and is no whole message yet: a message at most.
    bytes: Vec<u8>,
    room: Box<[u8; MAX_BYTES]>,
    /// See [`TraceCmd::prompt`].
    is_prompt: bool,
    patience: Duration,
}

impl TraceCmd {
    /// The messages that a stream carries.
    #[must_use]
    pub fn new(stream: Stream) -> Self {
        let room = Box::new([0; MAX_BYTES]);
        Self { stream, bytes: Vec::new(), room, is_prompt: false, patience: PATIENCE }
    }

    /// For messages whose round trips are timed. trace-cmd sends a message in parts, the later of
    /// which TCP holds back until the first is acknowledged; that would take 40 ms each time.
    #[must_use]
    pub fn prompt(self) -> Self {
        Self { is_prompt: true, ..self }
    }

    /// How long the other side may take nothing before it is taken for gone.
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// Sends a message, with the patience that was set.
    ///
    /// # Errors
    /// When the other side is gone or takes nothing, or the message is too long for one.
    pub fn send(&mut self, message: &Message) -> io::Result<()> {
        self.send_within(message, Wait::at_most(self.patience))
    }

    /// Sends a message. What is sent after one that could not be sent whole is not understood.
    ///
    /// # Errors
    /// As [`TraceCmd::send`].
    pub fn send_within(&mut self, message: &Message, wait: Wait<'_>) -> io::Result<()> {
        self.stream.write_all(&encode(message)?, wait)
    }

    /// Waits for a message; None when none came. What came of one stays for the next time.
    ///
    /// # Errors
    /// When the other side is gone, or sends what is no message.
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
                // It holds for a while only. What is no TCP connection knows nothing of it.
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
