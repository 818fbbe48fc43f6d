//! Bytes of packets, as the network's layers say them: they stand in for parts whose sizes were not recorded.
//!
//! A packet goes to its driver (`net_dev_start_xmit`), which hands it over in the same thread before it takes another
//! one. The driver puts a head of its own before it: as a part of its own, or in front of the packet's first bytes.

use super::buffers::AddedBuffer;
use super::by_thread::{ByThread, ThreadKey};

/// Threads that are remembered while they do that.
const MAX_THREADS: usize = 1 << 12;

/// A packet that went to a driver.
#[derive(Clone, Copy, Debug)]
struct Packet {
    bytes: u64,
    /// Bytes in its first place in memory: the heads of its protocols at least.
    first: u64,
}

/// Packets that were not handed over yet: of each thread the last one.
#[derive(Debug, Default)]
pub(super) struct Packets(ByThread<Packet, MAX_THREADS>);

impl Packets {
    /// A packet goes to a driver, with `elsewhere` of its bytes not in its first place in memory.
    pub(super) fn begin(&mut self, key: ThreadKey, bytes: u64, elsewhere: u64) {
        self.0.set(key, Packet { bytes, first: bytes.saturating_sub(elsewhere) });
    }

    /// A thread hands a buffer to a queue of a network: the bytes that were not recorded of it are those of its packet.
    pub(super) fn complete(&mut self, key: ThreadKey, buffer: &mut AddedBuffer) {
        let (packet, part) = (self.0.take(key), buffer.first_part);
        let Some((packet, part)) = packet.zip(part).filter(|_| buffer.lists == [1, 0]) else {
            return;
        };
        // A head of its own is smaller than those of any protocol.
        let head = part.checked_sub(packet.first).filter(|head| *head > 0).unwrap_or(part);
        buffer.complete(packet.bytes.saturating_add(head));
    }

    /// Events of a recording are missing: what comes next may not be what was begun.
    pub(super) fn lost(&mut self, recording: u16) {
        self.0.lost(recording);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: ThreadKey = (0, 7);

    /// A packet of which the first part, and all that were recorded, have this many bytes; and whether those are all.
    fn sent(first_part: u64, recorded: u64, is_whole: bool) -> AddedBuffer {
        let mut sent = AddedBuffer::made([1, 0], [Some((recorded, is_whole)), None, None]);
        (sent.first_part, sent.is_cut) = (Some(first_part), !is_whole);
        sent
    }

    fn completed(packets: &mut Packets, mut buffer: AddedBuffer) -> (u64, bool) {
        packets.complete(KEY, &mut buffer);
        (buffer.bytes.unwrap()[0], buffer.is_cut)
    }

    #[test]
    fn a_packet_has_the_bytes_that_its_layers_say_and_a_head() {
        let mut packets = Packets::default();
        // In front of the packet's first 66 bytes, and as a part of its own.
        packets.begin(KEY, 65_226, 65_160);
        assert_eq!(completed(&mut packets, sent(78, 20_000, false)), (65_238, false));
        packets.begin(KEY, 65_226, 65_160);
        assert_eq!(completed(&mut packets, sent(12, 20_000, false)), (65_238, false));
        // It is of one packet, and of the last one.
        assert_eq!(completed(&mut packets, sent(12, 20_000, false)), (20_000, true));
        packets.begin(KEY, 9000, 8000);
        packets.begin(KEY, 30_000, 29_934);
        packets.begin((1, 7), 50_000, 49_934);
        assert_eq!(completed(&mut packets, sent(78, 20_000, false)), (30_012, false));
        assert_eq!(packets.0.values().count(), 1);
    }

    #[test]
    fn what_does_not_fit_completes_nothing() {
        let mut packets = Packets::default();
        packets.begin(KEY, 9000, 8934);
        assert_eq!(completed(&mut packets, sent(78, 20_000, false)), (20_000, true));
        packets.begin(KEY, 9000, 8934);
        assert_eq!(completed(&mut packets, sent(78, 1512, true)), (1512, false));
        packets.begin(KEY, 65_226, 65_160);
        packets.lost(0);
        assert_eq!(completed(&mut packets, sent(78, 20_000, false)), (20_000, true));
        // Less than nothing in its first place, as only a damaged event says.
        packets.begin(KEY, 10, u64::MAX);
        assert_eq!(completed(&mut packets, sent(u64::MAX, 20_000, false)), (u64::MAX, false));
        for thread in 0..2 * MAX_THREADS as u32 {
            packets.begin((0, thread), 512, 1);
        }
        assert!(packets.0.values().count() <= MAX_THREADS);
    }
}
