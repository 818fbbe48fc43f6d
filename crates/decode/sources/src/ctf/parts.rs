//! The packets of a stream in order, with the losses between them; long packets are split.

use std::ops::Range;
use std::sync::Arc;

use ctf::{Events, Layout, Packet};
use ftrace::ringbuf::Missed;
use sys::FileMap;

/// Longer packets are split, to bound how much is read at once.
const PART_BYTES: u64 = 1 << 20;
/// Bytes of parts that are read at once, if there are several.
const BLOCK_BYTES: u64 = 256 << 10;

/// A packet, or a part of a packet.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// Index among the trace's files.
    pub(super) file: usize,
    pub(super) packet: Arc<Packet>,
    /// Bits of the packet that belong to this part.
    pub(super) bits: Range<u64>,
    /// The clock value before its first event.
    pub(super) cycles: u64,
    /// Losses before and after it.
    pub(super) before: Missed,
    pub(super) behind: Missed,
}

impl Part {
    /// Its size in the file in bytes.
    pub(super) fn len(&self) -> u64 {
        self.bits.end.saturating_sub(self.bits.start).div_ceil(8)
    }

    /// The packet's bytes.
    pub(super) fn bytes<'f>(&self, files: &'f [FileMap]) -> &'f [u8] {
        let file: &[u8] = files.get(self.file).map_or(&[], |file| file);
        raw_bytes::slice::range(file, self.packet.offset, self.packet.len)
    }

    /// Whether no events are missing between this part and the next.
    pub(super) fn is_followed_by(&self, next: &Self) -> bool {
        self.behind == Missed::Nothing && next.before == Missed::Nothing
    }
}

/// The known losses of a stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lost {
    pub(super) events: u64,
    /// Whether every packet has the number of events that its stream had lost.
    pub(super) is_counted: bool,
}

/// Sorts packets, and determines the losses between them.
///
/// Each packet states how many events its stream had lost by its end. LTTng loses them after the
/// packet's last event: the next buffer was full, and this one stayed open meanwhile
/// (`lib_ring_buffer_try_reserve_slow` of lttng-modules). Other tracers lose events before a packet
/// is opened.
pub(super) fn ordered(mut packets: Vec<(usize, Packet)>, is_lttng: bool) -> (Vec<Part>, Lost) {
    packets.sort_by_key(|(file, packet)| {
        (packet.begin.unwrap_or(0), packet.sequence.unwrap_or(0), *file, packet.offset)
    });
    let mut lost = Lost { events: 0, is_counted: true };
    let mut parts: Vec<Part> = Vec::new();
    let (mut counted, mut sequence) = (0_u64, None);
    for (file, packet) in packets {
        let mut before = Missed::Nothing;
        // Short sequence numbers wrap; two equal numbers mean two streams in one.
        let is_next = match (sequence, packet.sequence) {
            (Some(last), Some(this)) => this <= last || this - last == 1,
            _ => true,
        };
        if !is_next {
            before = Missed::Unknown;
        }
        sequence = packet.sequence.or(sequence);
        let more = packet.discarded.map(|now| since(counted, now, packet.discarded_bits));
        lost.is_counted &= more.is_some();
        counted = packet.discarded.unwrap_or(counted);
        let more = more.unwrap_or(0);
        lost.events = lost.events.saturating_add(more);
        let behind = match more {
            0 => Missed::Nothing,
            _ if is_lttng => Missed::Events(more),
            _ => {
                before = Missed::Events(more);
                Missed::Nothing
            }
        };
        let (bits, cycles) = (packet.events_at..packet.content, packet.begin.unwrap_or(0));
        let packet = Arc::new(packet);
        parts.push(Part { file, packet, bits, cycles, before, behind });
    }
    (parts, lost)
}

/// The increment of a counter with this many bits.
fn since(before: u64, now: u64, bits: u32) -> u64 {
    let mask = if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
    now.wrapping_sub(before) & mask
}

/// Splits long packets.
pub(super) fn parted(parts: Vec<Part>, layout: &Layout, files: &[FileMap]) -> Vec<Part> {
    let mut all = Vec::with_capacity(parts.len());
    for part in parts {
        if part.len() <= PART_BYTES {
            all.push(part);
            continue;
        }
        let begin = all.len();
        let Some(mut events) = Events::new(layout, &part.packet, part.bytes(files)) else {
            continue;
        };
        let mut from = (part.bits.start, part.cycles);
        let mut last = from;
        while let Some(Ok(event)) = events.next_event() {
            let at = events.event_at();
            if at.saturating_sub(from.0) >= PART_BYTES * 8 {
                all.push(Part { bits: from.0..at, cycles: from.1, ..part.clone() });
                from = (at, last.1);
            }
            last = (at, event.cycles);
        }
        all.push(Part { bits: from.0..part.bits.end, cycles: from.1, ..part.clone() });
        // The losses are before the first part and after the last.
        let count = all.len() - begin;
        for (at, piece) in all.iter_mut().skip(begin).enumerate() {
            if at > 0 {
                piece.before = Missed::Nothing;
            }
            if at + 1 < count {
                piece.behind = Missed::Nothing;
            }
        }
    }
    all
}

/// Groups parts that are read together.
pub(super) fn blocks(parts: &[Part]) -> Vec<Range<usize>> {
    let mut blocks = Vec::new();
    let (mut from, mut bytes) = (0, 0_u64);
    for (at, part) in parts.iter().enumerate() {
        if at > from && bytes.saturating_add(part.len()) > BLOCK_BYTES {
            blocks.push(from..at);
            (from, bytes) = (at, 0);
        }
        bytes = bytes.saturating_add(part.len());
    }
    if from < parts.len() {
        blocks.push(from..parts.len());
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(begin: u64, sequence: u64, discarded: u64) -> (usize, Packet) {
        let (begin, sequence, discarded) = (Some(begin), Some(sequence), Some(discarded));
        (0, Packet { begin, sequence, discarded, discarded_bits: 8, ..Packet::default() })
    }

    fn missed(is_lttng: bool) -> (Vec<(Missed, Missed)>, u64) {
        let packets = vec![packet(30, 4, 4), packet(10, 1, 254), packet(20, 2, 254)];
        let (parts, lost) = ordered(packets, is_lttng);
        (parts.iter().map(|part| (part.before, part.behind)).collect(), lost.events)
    }

    #[test]
    fn what_is_missing_lies_between_packets() {
        let (none, some) = (Missed::Nothing, Missed::Events);
        let behind = vec![(none, some(254)), (none, none), (Missed::Unknown, some(6))];
        assert_eq!(missed(true), (behind, 260));
        let before = vec![(some(254), none), (none, none), (some(6), none)];
        assert_eq!(missed(false), (before, 260));
    }
}
