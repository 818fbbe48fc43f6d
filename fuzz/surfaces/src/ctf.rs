//! A CTF trace: any metadata with any stream, or any packets of a valid trace.

use ctf::{Events, Layout, Nothing, Packets};
use raw_bytes::ByteOrder;
use testkit::{ctf_metadata, ctf_packet};

/// Bits of the first byte: byte order, and whether the metadata is valid.
const BIG: u8 = 1;
const SOUND: u8 = 2;
/// Separates metadata from a stream: a byte that no UTF-8 text contains.
const SEPARATOR: u8 = 0xff;

/// A field of each type with variable length.
const FIELDS: &str = "integer { size = 3; align = 1; signed = true; } a; string b; \
    integer { size = 8; align = 8; } n; integer { size = 16; align = 16; } c[n]; \
    struct { integer { size = 7; align = 32; } d[3]; string e; } f[n]; \
    enum : uint5_t { one, two = 2 ... 9 } t; \
    variant <t> { string one; struct { uint64_t g; floating_point { exp_dig = 8; mant_dig = 24; } h; } two; } v;";

/// Reads `bytes` as a trace; the first byte selects the mode.
pub fn run(bytes: &[u8]) {
    let Some((&form, rest)) = bytes.split_first() else { return };
    let order = if form & BIG == 0 { ByteOrder::Little } else { ByteOrder::Big };
    let sound = ctf_metadata(order, FIELDS);
    let (metadata, stream) = if form & SOUND == 0 {
        let at = rest.iter().position(|&byte| byte == SEPARATOR).unwrap_or(rest.len());
        (&rest[..at], rest.get(at + 1..).unwrap_or(&[]))
    } else {
        (sound.as_bytes(), rest)
    };
    let Ok(layout) = Layout::parse(metadata) else { return };
    packets(&layout, stream);
}

fn packets(layout: &Layout, stream: &[u8]) {
    let mut end = 0;
    for packet in Packets::new(layout, stream) {
        let Ok(packet) = packet else { return };
        assert_eq!(packet.offset, end, "packets follow each other");
        end += packet.len;
        let bytes = &stream[packet.offset as usize..end as usize];
        let (Some(mut passed), Some(mut visited)) =
            (Events::new(layout, &packet, bytes), Events::new(layout, &packet, bytes))
        else {
            return;
        };
        let mut seen = Vec::new();
        while let Some(Ok(event)) = passed.next_event() {
            seen.push((event.index, event.cycles));
            let Some(Ok(other)) = visited.next_event() else { panic!("an event is gone") };
            assert_eq!((event.index, event.cycles), (other.index, other.cycles));
            assert_eq!(passed.event_at(), visited.event_at());
            assert!(passed.event_at() < packet.content.max(1));
            let (first, other) = (passed.take(|_, _, _| ()), visited.visit(&mut Nothing));
            assert_eq!(first.is_ok(), other.is_ok(), "{first:?} {other:?}");
        }
        let mut heads = Vec::new();
        if let Some(mut events) = Events::new(layout, &packet, bytes) {
            let _ = events.heads(|class, cycles| heads.push((class, cycles)));
        }
        assert_eq!(heads, seen);
    }
}

/// Seed traces.
#[must_use]
pub fn files() -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for (order, bit, name) in [(ByteOrder::Little, 0, "little"), (ByteOrder::Big, BIG, "big")] {
        let packet = ctf_packet(order, 1 << 30, |bits| {
            for at in 0..4_u64 {
                bits.align(8).integer(0, 5).integer(at * 100, 27);
                bits.align(64).integer(5, 3).bytes(b"text\0").align(8).integer(1, 8);
                bits.align(16).integer(at, 16).align(32);
                bits.integer(1, 7).align(32).integer(2, 7).align(32).integer(3, 7).bytes(b"e\0");
                bits.integer(0, 5).bytes(b"one\0");
            }
        });
        all.push((format!("made-{name}-packets"), [&[SOUND | bit], &packet[..]].concat()));
        let metadata = ctf_metadata(order, FIELDS);
        let trace = [&[bit], metadata.as_bytes(), &[SEPARATOR], &packet].concat();
        all.push((format!("made-{name}-trace"), trace));
    }
    all
}
