//! Bytes of packets from the network stack: they replace lengths of parts that were not recorded.
//!
//! The network stack passes a packet to its driver (`net_dev_start_xmit`), which adds it to the queue in the same
//! thread before the next packet. The driver prepends a header of its own, as a separate part or in front of the
//! packet's first bytes.

use super::buffers::AddedBuffer;
use super::by_thread::{ByThread, ThreadKey};

/// Max threads with pending packets.
const MAX_THREADS: usize = 1 << 12;

/// A packet that was passed to a driver.
#[derive(Clone, Copy, Debug)]
struct Packet {
    bytes: u64,
    /// Bytes in its first fragment, which contains at least the protocol headers.
    first: u64,
}

/// The last pending packet of each thread.
#[derive(Debug, Default)]
pub(super) struct Packets(ByThread<Packet, MAX_THREADS>);

impl Packets {
    /// A packet is passed to a driver, with `elsewhere` bytes outside its first fragment.
    pub(super) fn begin(&mut self, key: ThreadKey, bytes: u64, elsewhere: u64) {
        self.0.set(key, Packet { bytes, first: bytes.saturating_sub(elsewhere) });
    }

    /// A thread adds a buffer to a network queue: missing lengths are taken from its packet.
    pub(super) fn complete(&mut self, key: ThreadKey, buffer: &mut AddedBuffer) {
        let (packet, part) = (self.0.take(key), buffer.first_part);
        let Some((packet, part)) = packet.zip(part).filter(|_| buffer.lists == [1, 0]) else {
            return;
        };
        // The driver's header is smaller than any protocol header.
        let head = part.checked_sub(packet.first).filter(|head| *head > 0).unwrap_or(part);
        buffer.complete(packet.bytes.saturating_add(head));
    }

    /// Drops pending packets after a loss.
    pub(super) fn lost(&mut self, recording: u16) {
        self.0.lost(recording);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: ThreadKey = (0, 7);

    /// A sent packet: bytes of its first part, recorded bytes, and whether all of its parts were recorded.
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
        // The header in front of the packet's first 66 bytes, and as a separate part.
        packets.begin(KEY, 65_226, 65_160);
        assert_eq!(completed(&mut packets, sent(78, 20_000, false)), (65_238, false));
        packets.begin(KEY, 65_226, 65_160);
        assert_eq!(completed(&mut packets, sent(12, 20_000, false)), (65_238, false));
        // A packet is used once, and only the last packet of a thread is used.
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
        // A negative size of the first fragment, which only a damaged event can have.
        packets.begin(KEY, 10, u64::MAX);
        assert_eq!(completed(&mut packets, sent(u64::MAX, 20_000, false)), (u64::MAX, false));
        for thread in 0..2 * MAX_THREADS as u32 {
            packets.begin((0, thread), 512, 1);
        }
        assert!(packets.0.values().count() <= MAX_THREADS);
    }
}
