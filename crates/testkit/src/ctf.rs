//! Writes a trace in the Common Trace Format bit by bit: deliberately naive, so that it shares no
//! shortcut with the reader.

use raw_bytes::ByteOrder;

/// The bits of a packet so far.
#[derive(Clone, Debug)]
pub struct CtfBits {
    order: ByteOrder,
    bits: Vec<bool>,
}

impl CtfBits {
    /// An empty packet.
    #[must_use]
    pub fn new(order: ByteOrder) -> Self {
        Self { order, bits: Vec::new() }
    }

    /// The number of bits.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bits.len()
    }

    /// Whether no bit has been written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bits.is_empty()
    }

    /// Pads with zeros to a multiple of `to` bits.
    pub fn align(&mut self, to: usize) -> &mut Self {
        while !self.bits.len().is_multiple_of(to) {
            self.bits.push(false);
        }
        self
    }

    /// Appends an integer of `count` bits: lowest bit first in little endian, highest bit first in
    /// big endian.
    pub fn integer(&mut self, value: u64, count: u32) -> &mut Self {
        for at in 0..count {
            let at = if self.order == ByteOrder::Little { at } else { count - 1 - at };
            self.bits.push(value >> at & 1 == 1);
        }
        self
    }

    /// Appends bytes at the next byte boundary.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.align(8);
        for &byte in bytes {
            self.integer(byte.into(), 8);
        }
        self
    }

    /// All bits as bytes. The first bit of a byte is its lowest bit in little endian, its highest
    /// in big endian.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let byte = |bits: &[bool]| {
            bits.iter().enumerate().fold(0, |byte: u8, (at, &bit)| {
                let at = if self.order == ByteOrder::Little { at } else { 7 - at };
                byte | u8::from(bit) << at
            })
        };
        self.bits.chunks(8).map(byte).collect()
    }
}

/// Metadata of a trace with LTTng's packet header, packet context and event header, and one event
/// with the fields `fields`.
#[must_use]
pub fn ctf_metadata(order: ByteOrder, fields: &str) -> String {
    let order = if order == ByteOrder::Little { "le" } else { "be" };
    format!(
        "/* CTF 1.8 */
typealias integer {{ size = 32; align = 8; signed = false; }} := uint32_t;
typealias integer {{ size = 64; align = 8; signed = false; }} := uint64_t;
typealias integer {{ size = 5; align = 1; signed = false; }} := uint5_t;
trace {{ major = 1; minor = 8; byte_order = {order};
    packet.header := struct {{ uint32_t magic; uint32_t stream_id; }}; }};
clock {{ name = \"monotonic\"; freq = 1000000000; offset = 0; }};
typealias integer {{ size = 27; align = 1; signed = false; map = clock.monotonic.value; }} := uint27_t;
typealias integer {{ size = 64; align = 8; signed = false; map = clock.monotonic.value; }} := stamp_t;
stream {{ id = 0;
    packet.context := struct {{ stamp_t timestamp_begin; stamp_t timestamp_end; uint64_t content_size;
        uint64_t packet_size; uint64_t packet_seq_num; uint64_t events_discarded; uint32_t cpu_id; }};
    event.header := struct {{
        enum : uint5_t {{ compact = 0 ... 30, extended = 31 }} id;
        variant <id> {{
            struct {{ uint27_t timestamp; }} compact;
            struct {{ uint32_t id; stamp_t timestamp; }} extended;
        }} v;
    }} align(8);
}};
event {{ name = \"made\"; id = 0; stream_id = 0; fields := struct {{ {fields} }}; }};
"
    )
}

/// A packet of such a trace; `events` writes the events with their headers.
#[must_use]
pub fn ctf_packet(order: ByteOrder, begin: u64, events: impl FnOnce(&mut CtfBits)) -> Vec<u8> {
    let mut body = CtfBits::new(order);
    // Alignment counts from the start of the packet, so reserve the space of its headers.
    body.bytes(&[0; HEAD_BYTES]);
    events(&mut body);
    let content = body.len() as u64;
    let size = content.next_multiple_of(64);
    let mut packet = CtfBits::new(order);
    packet.integer(0xc1fc_1fc1, 32).integer(0, 32);
    for value in [begin, begin, content, size, 0, 0] {
        packet.integer(value, 64);
    }
    packet.integer(1, 32);
    let mut bytes = packet.to_bytes();
    bytes.extend_from_slice(&body.align(64).to_bytes()[HEAD_BYTES..]);
    bytes
}

/// Bytes of the packet header and packet context.
const HEAD_BYTES: usize = 8 + 6 * 8 + 4;
