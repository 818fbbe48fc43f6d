//! Frames: a kind, a length, and that many bytes.
//!
//! ```text
//! offset  size
//!      0     1  kind
//!      1     4  length of the payload, little endian, at most MAX_PAYLOAD_BYTES
//!      5     n  payload: bytes as they are, a number in little endian, UTF-8, or JSON
//! ```

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::wire::message::Message;

/// Max size of a payload. A frame fits in the 32 KiB that one write to a virtio port accepts.
pub const MAX_PAYLOAD_BYTES: usize = 16 << 10;

const OPEN: u8 = 1;
const OPENED: u8 = 2;
const READY: u8 = 3;
const EXEC: u8 = 4;
const PUT: u8 = 5;
const GET: u8 = 6;
const CONNECT: u8 = 7;
const CONNECTED: u8 = 8;
const DATA: u8 = 9;
const END: u8 = 10;
const SIGNAL: u8 = 11;
const STDOUT: u8 = 12;
const STDERR: u8 = 13;
const ENDED: u8 = 14;
const FAILED: u8 = 15;

const HEAD_BYTES: usize = 5;
const NUMBER_FRAME_BYTES: usize = HEAD_BYTES + 8;

/// Why a frame could not be read.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The peer is gone.
    #[error("the channel was closed")]
    Closed,
    /// Reading failed.
    #[error("the channel failed: {0}")]
    Io(io::Error),
    /// The bytes are not a frame: the peers have different versions, or a client died in the middle.
    #[error("malformed frame of kind {kind} and {bytes} bytes")]
    Malformed {
        /// The first byte.
        kind: u8,
        /// The length that follows it.
        bytes: u32,
    },
}

impl From<io::Error> for FrameError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Writes a message with one `write_all`.
///
/// # Errors
/// When writing fails, or the message is longer than a frame may be.
pub fn write(to: &mut impl Write, message: &Message) -> io::Result<()> {
    let (kind, payload) = encode(message)?;
    if payload.len() > MAX_PAYLOAD_BYTES {
        let text =
            format!("a message of {} bytes; the maximum is {MAX_PAYLOAD_BYTES}", payload.len());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let bytes = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    let mut frame = Vec::with_capacity(HEAD_BYTES + payload.len());
    frame.push(kind);
    frame.extend_from_slice(&bytes.to_le_bytes());
    frame.extend_from_slice(&payload);
    to.write_all(&frame)
}

/// Reads a message.
///
/// # Errors
/// When the peer is gone, or sends invalid bytes.
pub fn read(from: &mut impl Read) -> Result<Message, FrameError> {
    let mut head = [0; HEAD_BYTES];
    fill(from, &mut head)?;
    let [kind, length @ ..] = head;
    let bytes = u32::from_le_bytes(length);
    let malformed = FrameError::Malformed { kind, bytes };
    let Some(length) = usize::try_from(bytes).ok().filter(|&n| n <= MAX_PAYLOAD_BYTES) else {
        return Err(malformed);
    };
    let mut payload = vec![0; length];
    fill(from, &mut payload)?;
    decode(kind, payload).ok_or(malformed)
}

/// Skips bytes up to and including the `Opened` of this number.
///
/// # Errors
/// When the peer is gone first.
pub fn skip_to_opened(from: &mut impl Read, number: u64) -> Result<(), FrameError> {
    let mut last = LastBytes::read(from)?;
    while last.0 != frame_with(OPENED, number) {
        last.advance(from)?;
    }
    Ok(())
}

/// Skips bytes up to and including an `Open`; returns its number.
///
/// # Errors
/// When the peer is gone first.
pub fn skip_to_open(from: &mut impl Read) -> Result<u64, FrameError> {
    let mut last = LastBytes::read(from)?;
    loop {
        let [_, _, _, _, _, number @ ..] = last.0;
        let number = u64::from_le_bytes(number);
        if last.0 == frame_with(OPEN, number) {
            return Ok(number);
        }
        last.advance(from)?;
    }
}

/// A frame whose payload is a number.
fn frame_with(kind: u8, number: u64) -> [u8; NUMBER_FRAME_BYTES] {
    let mut frame = [0; NUMBER_FRAME_BYTES];
    let bytes = [kind, 8, 0, 0, 0].into_iter().chain(number.to_le_bytes());
    frame.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
    frame
}

/// The last bytes read, as many as such a frame has.
struct LastBytes([u8; NUMBER_FRAME_BYTES]);

impl LastBytes {
    fn read(from: &mut impl Read) -> Result<Self, FrameError> {
        let mut bytes = [0; NUMBER_FRAME_BYTES];
        fill(from, &mut bytes)?;
        Ok(Self(bytes))
    }

    fn advance(&mut self, from: &mut impl Read) -> Result<(), FrameError> {
        self.0.rotate_left(1);
        let [.., last] = &mut self.0;
        fill(from, std::slice::from_mut(last))
    }
}

fn fill(from: &mut impl Read, buffer: &mut [u8]) -> Result<(), FrameError> {
    from.read_exact(buffer).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => FrameError::Closed,
        _ => FrameError::Io(error),
    })
}

fn encode(message: &Message) -> io::Result<(u8, Vec<u8>)> {
    Ok(match message {
        Message::Open(number) => (OPEN, number.to_le_bytes().to_vec()),
        Message::Opened(number) => (OPENED, number.to_le_bytes().to_vec()),
        Message::Ready(ready) => (READY, json(ready)?),
        Message::Exec(exec) => (EXEC, json(exec)?),
        Message::Put(put) => (PUT, json(put)?),
        Message::Get(path) => (GET, path.clone().into_bytes()),
        Message::Connect(path) => (CONNECT, path.clone().into_bytes()),
        Message::Connected => (CONNECTED, Vec::new()),
        Message::Data(bytes) => (DATA, bytes.clone()),
        Message::End => (END, Vec::new()),
        Message::Signal(number) => (SIGNAL, number.to_le_bytes().to_vec()),
        Message::Stdout(bytes) => (STDOUT, bytes.clone()),
        Message::Stderr(bytes) => (STDERR, bytes.clone()),
        Message::Ended(ended) => (ENDED, json(ended)?),
        Message::Failed(text) => (FAILED, text.clone().into_bytes()),
    })
}

fn decode(kind: u8, payload: Vec<u8>) -> Option<Message> {
    Some(match kind {
        OPEN => Message::Open(number(&payload)?),
        OPENED => Message::Opened(number(&payload)?),
        READY => Message::Ready(from_json(&payload)?),
        EXEC => Message::Exec(from_json(&payload)?),
        PUT => Message::Put(from_json(&payload)?),
        GET => Message::Get(String::from_utf8(payload).ok()?),
        CONNECT => Message::Connect(String::from_utf8(payload).ok()?),
        CONNECTED => Message::Connected,
        DATA => Message::Data(payload),
        END => Message::End,
        SIGNAL => Message::Signal(i32::from_le_bytes(payload.try_into().ok()?)),
        STDOUT => Message::Stdout(payload),
        STDERR => Message::Stderr(payload),
        ENDED => Message::Ended(from_json(&payload)?),
        FAILED => Message::Failed(String::from_utf8_lossy(&payload).into_owned()),
        _ => return None,
    })
}

fn number(payload: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(payload.try_into().ok()?))
}

fn json(value: &impl Serialize) -> io::Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(io::Error::from)
}

fn from_json<T: DeserializeOwned>(payload: &[u8]) -> Option<T> {
    serde_json::from_slice(payload).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::message::{Ended, Exec, Put, Ready};

    fn exec() -> Exec {
        Exec {
            argv: vec!["echo".into(), "a b".into()],
            env: [("HOME".into(), "/".into())].into(),
            stdin: true,
            timeout_ms: Some(5),
            detach_to: None,
        }
    }

    #[test]
    fn every_message_comes_back_as_it_went() {
        let messages = [
            Message::Open(7),
            Message::Opened(u64::MAX),
            Message::Ready(Ready { level: 2, uptime_ns: 5 }),
            Message::Exec(exec()),
            Message::Put(Put { path: "/tmp/a".into(), mode: 0o755 }),
            Message::Get("/tmp/b".into()),
            Message::Connect("/run/s".into()),
            Message::Connected,
            Message::Data(vec![0; MAX_PAYLOAD_BYTES]),
            Message::End,
            Message::Signal(-2),
            Message::Stdout(vec![1, 2]),
            Message::Stderr(Vec::new()),
            Message::Ended(Ended::Signal(9)),
            Message::Failed("no".into()),
        ];
        let mut bytes = Vec::new();
        for message in &messages {
            write(&mut bytes, message).unwrap();
        }
        let mut rest = bytes.as_slice();
        for message in messages {
            assert_eq!(read(&mut rest).unwrap(), message);
        }
        assert!(matches!(read(&mut rest), Err(FrameError::Closed)));
    }

    #[test]
    fn lengths_and_kinds_are_checked_before_anything_is_read() {
        let mut long = [DATA, 0xff, 0xff, 0xff, 0xff].as_slice();
        assert!(matches!(read(&mut long), Err(FrameError::Malformed { bytes: u32::MAX, .. })));
        let mut unknown = [99, 0, 0, 0, 0].as_slice();
        assert!(matches!(read(&mut unknown), Err(FrameError::Malformed { kind: 99, .. })));
        let mut short_number = [OPEN, 1, 0, 0, 0, 5].as_slice();
        assert!(matches!(read(&mut short_number), Err(FrameError::Malformed { .. })));
        let too_long = Message::Data(vec![0; MAX_PAYLOAD_BYTES + 1]);
        assert!(write(&mut Vec::new(), &too_long).is_err());
    }

    #[test]
    fn a_new_session_skips_what_the_last_one_left() {
        let mut bytes = vec![STDOUT, 200, 0];
        write(&mut bytes, &Message::Opened(1)).unwrap();
        bytes.extend([OPENED, 8, 0]);
        write(&mut bytes, &Message::Opened(2)).unwrap();
        write(&mut bytes, &Message::End).unwrap();
        let mut rest = bytes.as_slice();
        skip_to_opened(&mut rest, 2).unwrap();
        assert_eq!(read(&mut rest).unwrap(), Message::End);
        assert!(matches!(skip_to_opened(&mut rest, 3), Err(FrameError::Closed)));

        let mut bytes = vec![OPEN, 8, 0, 7];
        write(&mut bytes, &Message::Open(9)).unwrap();
        write(&mut bytes, &Message::End).unwrap();
        let mut rest = bytes.as_slice();
        assert_eq!(skip_to_open(&mut rest).unwrap(), 9);
        assert_eq!(read(&mut rest).unwrap(), Message::End);
        assert!(matches!(skip_to_open(&mut rest), Err(FrameError::Closed)));
    }

    proptest::proptest! {
        /// A machine may send anything.
        #[test]
        fn any_bytes_are_messages_or_refused(bytes: Vec<u8>) {
            let mut rest = bytes.as_slice();
            while let Ok(message) = read(&mut rest) {
                let mut again = Vec::new();
                write(&mut again, &message).unwrap();
                proptest::prop_assert_eq!(read(&mut again.as_slice()).unwrap(), message);
            }
            let _ = skip_to_open(&mut bytes.as_slice());
            let _ = skip_to_opened(&mut bytes.as_slice(), 1);
        }
    }
}
