//! TIME_SYNC: messages of the protocols that relate two machines' clocks.

use super::fields::{Fields, put_u32};

/// Size of a protocol's name, padded with zeros (`TRACECMD_TSYNC_PNAME_LENGTH`).
pub(super) const NAME_BYTES: usize = 16;
/// The protocol name in messages between rounds.
const NONE: &str = "none";
/// Number of a message that begins a round.
const PROBE: u32 = 1;
/// Number of the message that ends synchronisation.
const STOP: u32 = 2;

/// A message of a protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeSync {
    /// The protocol's name, at most 16 bytes.
    pub protocol: String,
    /// The message's number in its protocol.
    pub number: u32,
    /// The content of the message.
    pub payload: Vec<u8>,
}

impl TimeSync {
    pub(super) const FIXED_BYTES: usize = NAME_BYTES + 4;

    /// Begins a round for a CPU of the agent's machine. The CPU's number is in the sender's own
    /// byte order (`struct tsync_probe_request_msg`).
    #[must_use]
    pub fn probe(cpu: u16) -> Self {
        Self { protocol: NONE.into(), number: PROBE, payload: cpu.to_ne_bytes().to_vec() }
    }

    /// Ends time synchronisation.
    #[must_use]
    pub fn stop() -> Self {
        Self { protocol: NONE.into(), number: STOP, payload: Vec::new() }
    }

    /// The CPU, if this message begins a round.
    #[must_use]
    pub fn probed_cpu(&self) -> Option<u16> {
        let is_probe = self.protocol == NONE && self.number == PROBE;
        is_probe.then(|| Fields::new(&self.payload).array().map(u16::from_ne_bytes))?
    }

    pub(super) fn put(&self, fixed: &mut Vec<u8>, rest: &mut Vec<u8>) {
        put_name(&self.protocol, fixed);
        put_u32(self.number, fixed);
        rest.extend_from_slice(&self.payload);
    }

    pub(super) fn parse(fixed: &mut Fields<'_>, rest: &Fields<'_>) -> Option<Self> {
        Some(Self { protocol: name(fixed)?, number: fixed.u32()?, payload: rest.rest().to_vec() })
    }

    /// The payload, if this is a message of that protocol and number.
    pub(super) fn payload_of(&self, protocol: &str, number: u32) -> Option<Fields<'_>> {
        let is_match = self.protocol == protocol && self.number == number;
        is_match.then(|| Fields::new(&self.payload))
    }
}

/// Reads a name of fixed length. A name of max length has no NUL.
pub(super) fn name(fixed: &mut Fields<'_>) -> Option<String> {
    let bytes = fixed.array::<NAME_BYTES>()?;
    let bytes = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    Some(
        bytes
            .iter()
            .map(|&byte| if byte.is_ascii_graphic() { char::from(byte) } else { '?' })
            .collect(),
    )
}

pub(super) fn put_name(name: &str, to: &mut Vec<u8>) {
    let mut bytes = [0; NAME_BYTES];
    let text = name.split('\0').next().unwrap_or_default();
    bytes.iter_mut().zip(text.bytes()).for_each(|(to, from)| *to = from);
    to.extend_from_slice(&bytes);
}
