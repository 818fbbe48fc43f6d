//! Packets of slices and instants, encoded as a stream: nearly all of an export. The encoder bypasses the
//! [messages](super::messages), so it allocates nothing; a test compares its bytes with theirs.

use std::io::{self, Write};

use prost::Message;
use raw_bytes::seven_bits;

use super::interned::{Annotation, Interned};
use super::messages::event_type;
use super::wire::{bytes, nested, number, varint};
use super::{NEEDS_STATE, PACKET_TAG, SEQUENCE};
use crate::Args;

/// Keys before fields: the field's number and its wire type (0: a varint; 2: a length and bytes).
mod key {
    /// `TracePacket.timestamp`, `.trusted_packet_sequence_id`, `.track_event`, `.interned_data`, `.sequence_flags`.
    pub(super) const TIMESTAMP: u8 = 8 << 3;
    pub(super) const SEQUENCE: u8 = 10 << 3;
    pub(super) const TRACK_EVENT: u8 = 11 << 3 | 2;
    pub(super) const INTERNED: u8 = 12 << 3 | 2;
    pub(super) const FLAGS: u8 = 13 << 3;
    /// `TrackEvent.category_iids`, `.debug_annotations`, `.type`, `.name_iid`, `.track_uuid`.
    pub(super) const CATEGORY: u8 = 3 << 3;
    pub(super) const ANNOTATION: u8 = 4 << 3 | 2;
    pub(super) const TYPE: u8 = 9 << 3;
    pub(super) const NAME: u8 = 10 << 3;
    pub(super) const TRACK: u8 = 11 << 3;
    /// `DebugAnnotation.name_iid`, `.bool_value`, `.uint_value`, `.int_value`, `.string_value`, `.string_value_iid`.
    pub(super) const ARG_NAME: u8 = 1 << 3;
    pub(super) const BOOL: u8 = 2 << 3;
    pub(super) const UINT: u8 = 3 << 3;
    pub(super) const INT: u8 = 4 << 3;
    pub(super) const STRING: u8 = 6 << 3 | 2;
    /// 17 << 3, in two bytes.
    pub(super) const STRING_IID: [u8; 2] = [0x88, 0x01];
}

/// Packets are written once they have this many bytes.
const WRITE_BYTES: usize = 1 << 16;

/// A slice or an instant on its track.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named<'a> {
    /// One of [`event_type`].
    pub(super) kind: i32,
    /// The track's number in the file.
    pub(super) track: u64,
    pub(super) name: &'a str,
    pub(super) category: &'a str,
    pub(super) args: &'a Args<'a>,
}

/// Encodes packets, one after the other; reused to save allocations.
#[derive(Debug, Default)]
pub(super) struct TrackEventEncoder {
    /// Packets to be written.
    done: Vec<u8>,
}

impl TrackEventEncoder {
    /// Adds the beginning of a slice, or an instant.
    pub(super) fn named(&mut self, stamp_ns: u64, named: &Named<'_>, interned: &mut Interned) {
        // Strings are numbered in the order in which the messages use them.
        let name = interned.name(named.name);
        self.packet(stamp_ns, interned, |event, interned| {
            number(event, key::CATEGORY, interned.category(named.category));
            for (name, arg) in named.args {
                annotate(event, &interned.annotation(name, arg));
            }
            number(event, key::TYPE, named.kind as u64);
            number(event, key::NAME, name);
            number(event, key::TRACK, named.track);
        });
    }

    /// Adds the end of a track's slice.
    pub(super) fn end(&mut self, stamp_ns: u64, track: u64, interned: &mut Interned) {
        self.packet(stamp_ns, interned, |event, _| {
            number(event, key::TYPE, event_type::SLICE_END as u64);
            number(event, key::TRACK, track);
        });
    }

    fn packet(
        &mut self,
        stamp_ns: u64,
        interned: &mut Interned,
        event: impl FnOnce(&mut Vec<u8>, &mut Interned),
    ) {
        nested(&mut self.done, PACKET_TAG, |packet| {
            number(packet, key::TIMESTAMP, stamp_ns);
            packet.extend_from_slice(&[key::SEQUENCE, SEQUENCE as u8]);
            nested(packet, key::TRACK_EVENT, |out| event(out, interned));
            if let Some(new) = interned.take_new() {
                bytes(packet, key::INTERNED, &new.encode_to_vec());
            }
            packet.extend_from_slice(&[key::FLAGS, NEEDS_STATE as u8]);
        });
    }

    /// Writes the added packets if there are [`WRITE_BYTES`] of them.
    #[inline]
    pub(super) fn write_many(&mut self, out: &mut impl Write) -> io::Result<()> {
        if self.done.len() < WRITE_BYTES { Ok(()) } else { self.write(out) }
    }

    /// Writes the added packets.
    pub(super) fn write(&mut self, out: &mut impl Write) -> io::Result<()> {
        let written = out.write_all(&self.done);
        self.done.clear();
        written
    }
}

/// Adds a value.
fn annotate(out: &mut Vec<u8>, annotation: &Annotation<'_>) {
    let (name, key, value) = match *annotation {
        Annotation::Bool(name, yes) => (name, [key::BOOL, 0], yes.into()),
        Annotation::Unsigned(name, value) => (name, [key::UINT, 0], value),
        Annotation::Signed(name, value) => (name, [key::INT, 0], value.cast_unsigned()),
        Annotation::Interned(name, text) => (name, key::STRING_IID, text),
        Annotation::Text(name, text) => {
            return nested(out, key::ANNOTATION, |out| {
                number(out, key::ARG_NAME, name);
                bytes(out, key::STRING, text.as_bytes());
            });
        }
    };
    let keys = if key == key::STRING_IID { 2 } else { 1 };
    match u8::try_from(name) {
        // All parts are known before, so the length is known as well.
        Ok(name @ ..0x80) => {
            let length = (2 + keys + seven_bits::length(value)) as u8;
            let head = [key::ANNOTATION, length, key::ARG_NAME, name, key[0], key[1], 0, 0];
            seven_bits::put_after_some(out, head, 4 + keys, value);
        }
        _ => nested(out, key::ANNOTATION, |out| {
            number(out, key::ARG_NAME, name);
            out.extend_from_slice(key.get(..keys).unwrap_or(&key));
            varint(out, value);
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::messages::{DebugAnnotation, TracePacket, TrackEvent};
    use super::*;
    use crate::Arg;

    /// Decodes packets into messages.
    fn decoded(mut bytes: &[u8]) -> Vec<TracePacket> {
        let mut packets = Vec::new();
        while let Some((tag, rest)) = bytes.split_first() {
            assert_eq!(*tag, PACKET_TAG);
            bytes = rest;
            let packet = TracePacket::decode_length_delimited(&mut bytes).unwrap();
            packets.push(packet);
        }
        packets
    }

    #[test]
    fn packets_are_what_the_messages_say() {
        let args = [
            ("reason", Arg::Name("msr")),
            ("exit_ns", Arg::Number(u64::MAX)),
            ("delta", Arg::Signed(-5)),
            ("paired", Arg::Bool(false)),
            ("comm", Arg::Text("a text of its own")),
            ("task", Arg::Name("msr")),
        ];
        let (mut encoder, mut interned) = (TrackEventEncoder::default(), Interned::default());
        let named = Named {
            kind: event_type::SLICE_BEGIN,
            track: 1 << 32,
            name: "exit_kernel: msr",
            category: "exit_kernel",
            args: &args,
        };
        encoder.named(1_000_000_007, &named, &mut interned);
        encoder.named(1_000_000_008, &named, &mut interned);
        encoder.end(1_000_000_009, 1 << 32, &mut interned);
        let mut bytes = Vec::new();
        encoder.write(&mut bytes).unwrap();
        let packets = decoded(&bytes);
        // Encoding the decoded messages gives the same bytes: no field is missing or out of order.
        let again: Vec<u8> = packets
            .iter()
            .flat_map(|packet| [vec![PACKET_TAG], packet.encode_length_delimited_to_vec()].concat())
            .collect();
        assert_eq!(again, bytes);

        let [first, second, third] = packets.as_slice() else { panic!("{packets:?}") };
        let event = |packet: &TracePacket| packet.track_event.clone().unwrap();
        let annotation =
            |name_iid| DebugAnnotation { name_iid: Some(name_iid), ..Default::default() };
        let expected = TrackEvent {
            r#type: Some(event_type::SLICE_BEGIN),
            track_uuid: Some(1 << 32),
            name_iid: Some(1),
            category_iids: vec![1],
            debug_annotations: vec![
                DebugAnnotation { string_value_iid: Some(1), ..annotation(1) },
                DebugAnnotation { uint_value: Some(u64::MAX), ..annotation(2) },
                DebugAnnotation { int_value: Some(-5), ..annotation(3) },
                DebugAnnotation { bool_value: Some(false), ..annotation(4) },
                DebugAnnotation {
                    string_value: Some("a text of its own".to_owned()),
                    ..annotation(5)
                },
                DebugAnnotation { string_value_iid: Some(1), ..annotation(6) },
            ],
            ..TrackEvent::default()
        };
        assert_eq!((event(first), event(second)), (expected.clone(), expected));
        let end = TrackEvent {
            r#type: Some(event_type::SLICE_END),
            track_uuid: Some(1 << 32),
            ..TrackEvent::default()
        };
        assert_eq!(event(third), end);
        let stamps = packets.iter().map(|packet| packet.timestamp).collect::<Vec<_>>();
        assert_eq!(stamps, [1_000_000_007, 1_000_000_008, 1_000_000_009].map(Some));
        let new = first.interned_data.clone().unwrap();
        assert_eq!(new.debug_annotation_names.len(), 6);
        assert!(second.interned_data.is_none() && third.interned_data.is_none());
        assert!(packets.iter().all(|packet| packet.sequence_flags == Some(NEEDS_STATE)));
    }
}
