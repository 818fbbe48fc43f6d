//! Messages in a stream of bytes: a head with sizes, then that many bytes.

use std::io::{self, Read, Write};

use super::MAX_BYTES;
use super::fields::Fields;
use super::message::{DecodeError, Message, fixed_bytes};

/// Size of a head: message size, command, size of the fixed part.
pub(super) const HEAD_BYTES: usize = 12;

/// A message could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The peer is gone.
    #[error("the connection was closed")]
    Closed,
    /// Reading failed; [`io::ErrorKind::WouldBlock`] on timeout.
    #[error("the connection failed")]
    Io(#[source] io::Error),
    /// The bytes are not a valid message.
    #[error(transparent)]
    Decode(#[from] DecodeError),
}

/// Encodes a message.
///
/// # Errors
/// When it exceeds the max size.
pub fn encode(message: &Message) -> io::Result<Vec<u8>> {
    let (command, fixed, rest) = message.parts();
    let size = HEAD_BYTES.saturating_add(fixed.len()).saturating_add(rest.len());
    let sizes = u32::try_from(size).ok().filter(|_| size <= MAX_BYTES);
    let (Some(size), Ok(fixed_size)) = (sizes, u32::try_from(fixed.len())) else {
        let text = format!("a message of {size} bytes; the maximum is {MAX_BYTES}");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    };
    let head = [size, command, fixed_size].map(u32::to_be_bytes);
    Ok([head.as_flattened(), &fixed, &rest].concat())
}

/// Decodes the message at the beginning of `bytes`, and returns its size; `None` if it is incomplete.
///
/// # Errors
/// When the bytes can't become a valid message.
pub fn decode(bytes: &[u8]) -> Result<Option<(Message, usize)>, DecodeError> {
    let Some((head, rest)) = bytes.split_first_chunk() else { return Ok(None) };
    let head = Head::parse(*head)?;
    let Some(body) = rest.get(..head.body_bytes) else { return Ok(None) };
    Ok(Some((head.message(body)?, HEAD_BYTES.saturating_add(head.body_bytes))))
}

/// Writes a message as one `write_all`.
///
/// # Errors
/// When writing fails, or the message is too long.
pub fn write(to: &mut impl Write, message: &Message) -> io::Result<()> {
    to.write_all(&encode(message)?)
}

/// Reads a message.
///
/// # Errors
/// When the peer is gone, sends nothing in time, or sends invalid bytes.
pub fn read(from: &mut impl Read) -> Result<Message, ReadError> {
    let mut head = [0; HEAD_BYTES];
    fill(from, &mut head)?;
    let head = Head::parse(head)?;
    let mut body = [0; MAX_BYTES];
    let body = body.get_mut(..head.body_bytes).unwrap_or_default();
    fill(from, body)?;
    Ok(head.message(body)?)
}

fn fill(from: &mut impl Read, buffer: &mut [u8]) -> Result<(), ReadError> {
    from.read_exact(buffer).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => ReadError::Closed,
        _ => ReadError::Io(error),
    })
}

/// A head whose sizes are valid.
struct Head {
    command: u32,
    fixed_size: u32,
    body_bytes: usize,
}

impl Head {
    fn parse(bytes: [u8; HEAD_BYTES]) -> Result<Self, DecodeError> {
        let mut fields = Fields::new(&bytes);
        let [size, command, fixed_size] = [(); 3].map(|()| fields.u32().unwrap_or(0));
        let body = usize::try_from(size).ok().filter(|&size| size <= MAX_BYTES);
        let body = body.and_then(|size| size.checked_sub(HEAD_BYTES));
        let body_bytes = body.ok_or(DecodeError::Size { bytes: size })?;
        Ok(Self { command, fixed_size, body_bytes })
    }

    fn message(&self, body: &[u8]) -> Result<Message, DecodeError> {
        let &Self { command, fixed_size, body_bytes } = self;
        let split = usize::try_from(fixed_size).ok().and_then(|at| body.split_at_checked(at));
        let (fixed, rest) = split.ok_or(DecodeError::FixedPart {
            command,
            fixed_bytes: fixed_size,
            bytes: body_bytes,
        })?;
        let mut fixed_part = fixed.to_vec();
        fixed_part.resize(fixed_bytes(command), 0);
        Message::from_parts(command, &fixed_part, rest)
    }
}
