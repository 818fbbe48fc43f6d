//! Finds the packets in a stream file, and parses their headers.

use raw_bytes::counted;

use crate::field::{Float, Integer, Label, Role};
use crate::walk::{Visit, Walker};
use crate::{Cursor, Layout, Short};

/// Magic number at the start of each packet, if its header has a field for it.
const MAGIC: u64 = 0xc1fc_1fc1;

/// A packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// Offset in the file.
    pub offset: u64,
    /// Size in bytes.
    pub len: u64,
    /// Index of its stream class.
    pub stream: usize,
    /// The bit at which its events begin.
    pub events_at: u64,
    /// The bit at which its content ends.
    pub content: u64,
    /// Id of the stream in its class.
    pub instance: Option<u64>,
    /// The CPU of the packet.
    pub cpu: Option<u64>,
    /// The clock at its start.
    pub begin: Option<u64>,
    /// The clock at its end.
    pub end: Option<u64>,
    /// Events that its stream had lost by its end.
    pub discarded: Option<u64>,
    /// Bits of the counter `discarded`, which wraps.
    pub discarded_bits: u32,
    /// Sequence number in its stream.
    pub sequence: Option<u64>,
    /// Whether the file truncates it.
    pub is_cut: bool,
}

/// Damage that makes the rest of a file unreadable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct PacketDamage {
    /// Offset of the packet.
    pub offset: u64,
    /// Description of the damage.
    pub what: String,
}

/// The packets of a file.
#[derive(Debug)]
pub struct Packets<'a> {
    layout: &'a Layout,
    file: &'a [u8],
    offset: usize,
    slots: Vec<i128>,
}

impl<'a> Packets<'a> {
    /// The packets of a file of a trace with this layout.
    #[must_use]
    pub fn new(layout: &'a Layout, file: &'a [u8]) -> Self {
        Self { layout, file, offset: 0, slots: vec![0; layout.slots] }
    }

    fn packet(&mut self) -> Result<Packet, PacketDamage> {
        let offset = self.offset as u64;
        let bad = |what: String| PacketDamage { offset, what };
        let rest = self.file.get(self.offset..).unwrap_or(&[]);
        let have = (rest.len() as u64).saturating_mul(8);
        let short = |error: Short| bad(format!("the header of a packet: {error}"));
        let cursor = Cursor::new(rest, 0, have);
        let mut walker = Walker { cursor, slots: &mut self.slots };
        let mut roles = Roles::default();
        if let Some(header) = &self.layout.packet_header {
            walker.fields(header, &mut roles).map_err(short)?;
        }
        if roles.magic.is_some_and(|magic| magic != MAGIC) {
            return Err(bad("no packet begins here".to_owned()));
        }
        let Some((stream, class)) = self.layout.stream(roles.stream) else {
            return Err(bad(format!(
                "a packet belongs to stream {}, which the metadata does not describe",
                roles.stream
            )));
        };
        if let Some(context) = &class.packet_context {
            walker.fields(context, &mut roles).map_err(short)?;
        }
        let head = walker.cursor.at();
        let Roles { mut packet, size, content, .. } = roles;
        // A packet without a size extends to the end of the file.
        let size = size.or(content).unwrap_or(have);
        packet.content = content.unwrap_or(size);
        if size % 8 != 0 || packet.content > size || packet.content < head {
            let content = packet.content;
            let bits = |number: u64| counted(number, "bit", "bits");
            return Err(bad(format!(
                "a packet claims {} with {} of content and {head} of header, which is impossible",
                bits(size),
                bits(content)
            )));
        }
        packet.is_cut = size > have;
        packet.len = size.min(have) / 8;
        packet.content = packet.content.min(have);
        if packet.len == 0 {
            return Err(bad("a packet has a size of 0 bits".to_owned()));
        }
        (packet.offset, packet.stream, packet.events_at) = (offset, stream, head);
        Ok(packet)
    }
}

impl Iterator for Packets<'_> {
    type Item = Result<Packet, PacketDamage>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.offset >= self.file.len() {
            return None;
        }
        let packet = self.packet();
        let len = packet.as_ref().ok().and_then(|packet| usize::try_from(packet.len).ok());
        // After a damaged packet, the position of the next one is unknown.
        self.offset = len.map_or(self.file.len(), |len| self.offset.saturating_add(len));
        Some(packet)
    }
}

/// Values in a packet header, by role.
#[derive(Default)]
struct Roles {
    packet: Packet,
    magic: Option<u64>,
    stream: u64,
    size: Option<u64>,
    content: Option<u64>,
}

impl Visit for Roles {
    fn integer(&mut self, name: &str, value: i128, integer: Option<&Integer>, _: Option<&[Label]>) {
        let value = value as u64;
        let packet = &mut self.packet;
        match integer.and_then(|integer| integer.role) {
            Some(Role::Magic) => self.magic = Some(value),
            Some(Role::StreamId) => self.stream = value,
            Some(Role::StreamInstance) => packet.instance = Some(value),
            Some(Role::PacketSize) => self.size = Some(value),
            Some(Role::ContentSize) => self.content = Some(value),
            // CTF 2 has the same role for the packet's start and an event's time.
            Some(Role::Begin | Role::Timestamp) => packet.begin = Some(value),
            Some(Role::End) => packet.end = Some(value),
            Some(Role::Discarded) => {
                packet.discarded = Some(value);
                packet.discarded_bits = integer.map_or(64, |integer| integer.bits);
            }
            Some(Role::Sequence) => packet.sequence = Some(value),
            Some(Role::Cpu) => packet.cpu = Some(value),
            // CTF 2 has no role for it.
            None if name == "cpu_id" => packet.cpu = Some(value),
            _ => {}
        }
    }

    fn float(&mut self, _: &str, _: f64, _: &Float) {}
    fn text(&mut self, _: &str, _: &[u8]) {}
    fn begin(&mut self, _: &str, _: bool) {}
    fn end(&mut self, _: bool) {}
}
