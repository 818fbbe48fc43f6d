//! The control stream: messages with a head that has their length.
//!
//! ```text
//! offset  size
//!      0     4  "HSCM"
//!      4     2  kind of message
//!      6     2  0
//!      8     8  session: a number that the host chose
//!     16     4  bytes of payload, at most MAX_PAYLOAD_BYTES
//!     20     4  CRC-32 of the bytes before and of the payload
//!     24     n  payload
//! ```
//!
//! A serial port keeps what a disconnected client left unread, and reading may begin in the middle of a message: the
//! decoder skips bytes that form no message.

use crate::wire::fields::Payload;
use crate::wire::message::Message;

/// Magic number of a message.
const MAGIC: [u8; 4] = *b"HSCM";
const HEAD_BYTES: usize = 24;
/// Max size of a payload. A message fits in the 32 KiB that one write to a virtio port accepts.
pub const MAX_PAYLOAD_BYTES: usize = 30 << 10;

/// Encodes a message of a session; `None` if it is too long, for example because it lists thousands of events.
#[must_use]
pub fn encode(session: u64, message: &Message) -> Option<Vec<u8>> {
    let mut payload = Payload::default();
    message.write(&mut payload);
    if payload.0.len() > MAX_PAYLOAD_BYTES {
        return None;
    }
    let length = u32::try_from(payload.0.len()).ok()?;
    let mut head = Payload::default();
    head.bytes(&MAGIC).u16(message.kind()).u16(0).u64(session).u32(length);
    let crc = crc(&head.0, &payload.0);
    head.u32(crc).bytes(&payload.0);
    Some(head.0)
}

fn crc(head: &[u8], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(head);
    hasher.update(payload);
    hasher.finalize()
}

/// Finds messages in a stream. It buffers at most one message.
#[derive(Debug, Default)]
pub struct ControlDecoder {
    bytes: Vec<u8>,
    /// Bytes of `bytes` that were consumed.
    used: usize,
    skipped: u64,
}

impl ControlDecoder {
    /// A decoder that may start anywhere in a stream.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next bytes of the stream. The caller first drains [`ControlDecoder::next`], so that the buffer holds at
    /// most one partial message besides `bytes`.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.used.min(self.bytes.len()));
        self.used = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The next message and its session; `None` until more bytes arrive.
    #[allow(clippy::should_implement_trait, reason = "None is not the end")]
    pub fn next(&mut self) -> Option<(u64, Message)> {
        loop {
            let rest = self.bytes.get(self.used..).unwrap_or_default();
            let found = rest.windows(MAGIC.len()).position(|window| window == MAGIC);
            // The last bytes may be the beginning of a magic number.
            let skip = found.unwrap_or(rest.len().saturating_sub(MAGIC.len().saturating_sub(1)));
            self.skip(skip);
            found?;
            match self.here() {
                Here::Message(session, message, length) => {
                    self.used = self.used.saturating_add(length);
                    return Some((session, message));
                }
                Here::NotYet => return None,
                Here::Nothing => self.skip(MAGIC.len()),
            }
        }
    }

    /// Stops waiting for the rest of a message whose sender seems to be gone: searches the received bytes for other
    /// messages.
    pub fn give_up(&mut self) {
        if matches!(self.here(), Here::NotYet)
            && self.bytes.len().saturating_sub(self.used) >= HEAD_BYTES
        {
            self.skip(MAGIC.len());
        }
    }

    /// Bytes that belonged to no message.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    fn skip(&mut self, count: usize) {
        self.used = self.used.saturating_add(count);
        self.skipped = self.skipped.saturating_add(count as u64);
    }

    /// Classifies the bytes at the current position.
    fn here(&self) -> Here {
        let rest = self.bytes.get(self.used..).unwrap_or_default();
        let Some((head, rest)) = rest.split_at_checked(HEAD_BYTES) else { return Here::NotYet };
        let Some(head) = Head::read(head) else { return Here::Nothing };
        let Some(payload) = rest.get(..head.length) else { return Here::NotYet };
        if crc(&head.summed, payload) != head.crc {
            return Here::Nothing;
        }
        match Message::read(head.kind, payload) {
            Ok(message) => {
                Here::Message(head.session, message, HEAD_BYTES.saturating_add(head.length))
            }
            Err(_) => Here::Nothing,
        }
    }
}

enum Here {
    Message(u64, Message, usize),
    NotYet,
    Nothing,
}

struct Head {
    kind: u16,
    session: u64,
    length: usize,
    crc: u32,
    /// The checksum covers these bytes and the payload.
    summed: [u8; HEAD_BYTES - 4],
}

impl Head {
    fn read(bytes: &[u8]) -> Option<Self> {
        let mut fields = crate::wire::fields::Fields::new(bytes);
        fields.take(MAGIC.len()).ok()?;
        let kind = fields.u16().ok()?;
        fields.u16().ok()?;
        let session = fields.u64().ok()?;
        let length = usize::try_from(fields.u32().ok()?).ok()?;
        let crc = fields.u32().ok()?;
        let summed = *bytes.first_chunk()?;
        (length <= MAX_PAYLOAD_BYTES).then_some(Self { kind, session, length, crc, summed })
    }
}
