//! The interface for inputs: records of each CPU in time order.
//!
//! A reader of streams receives [`Packet`]s, independent of the storage. Pages of the kernel's ring
//! buffer are packets already; other inputs implement [`RecordSource`] for each CPU, which delivers
//! records in lists. A record is the same as in the kernel's ring buffer: a time stamp, and the
//! event's bytes with `common_type` and `common_pid` at the positions in the recording's
//! [`crate::FormatTable`]. Raw tracepoint data in a perf.data sample has this form.

use std::fmt::Debug;

use ftrace::ringbuf::{Missed, Page, Record, RecordDamage, StepBack};

use crate::Damage;
use crate::part::StreamPart;

/// The records of a CPU, in blocks that can be read independently and in any order.
pub(crate) trait RecordSource: Debug + Send + Sync {
    /// Number of blocks.
    fn block_count(&self) -> usize;

    /// Size of a block in the file in bytes; 0 past the last block.
    fn stored_len(&self, block: usize) -> u64;

    /// Approximate size of a block's records in memory; 0 past the last block.
    fn unpacked_len(&self, block: usize) -> u64;

    /// Adds the records of a block to `list`, which is empty, in time order.
    ///
    /// # Errors
    /// If nothing in the block can be read.
    fn read(&self, block: usize, list: &mut RecordList) -> Result<(), Damage>;
}

/// Records of a CPU, with the losses between them.
#[derive(Debug, Default)]
pub(crate) struct RecordList {
    bytes: Vec<u8>,
    records: Vec<Listed>,
    packets: Vec<ListedPacket>,
}

#[derive(Clone, Copy, Debug)]
struct Listed {
    stamp: u64,
    /// End of its bytes; they begin at the end of the previous record.
    end: usize,
}

/// Records without a loss between them.
#[derive(Clone, Copy, Debug)]
struct ListedPacket {
    /// Time of the first record, or of the loss if there is no record.
    stamp: u64,
    missed: Missed,
    /// Offset of its first record in the file.
    offset: u64,
    /// Index of the first record, and start of its bytes.
    first: usize,
    begin: usize,
}

impl RecordList {
    /// Removes all records, but keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.records.clear();
        self.packets.clear();
    }

    /// Events are missing here, at `offset` in the file, before the next record. `stamp` is the
    /// time of the loss, or the last known time.
    pub(crate) fn missed(&mut self, missed: Missed, stamp: u64, offset: u64) {
        let (first, begin) = (self.records.len(), self.bytes.len());
        self.packets.push(ListedPacket { stamp, missed, offset, first, begin });
    }

    /// Adds a record at `offset` in the file; `write` appends its bytes.
    pub(crate) fn push(&mut self, stamp: u64, offset: u64, write: impl FnOnce(&mut Vec<u8>)) {
        if self.packets.is_empty() {
            self.missed(Missed::Nothing, stamp, offset);
        }
        write(&mut self.bytes);
        self.records.push(Listed { stamp, end: self.bytes.len() });
    }

    /// The last time known.
    pub(crate) fn last_stamp(&self) -> u64 {
        let record = self.records.last().map_or(0, |record| record.stamp);
        self.packets.last().map_or(record, |packet| packet.stamp.max(record))
    }

    /// Whether it has neither records nor losses.
    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty() && self.packets.is_empty()
    }

    fn packet(&self, at: usize) -> Option<(u64, Packet<'_>)> {
        let packet = self.packets.get(at)?;
        let next = self.packets.get(at.saturating_add(1));
        let end = next.map_or(self.records.len(), |next| next.first);
        let records = self.records.get(packet.first..end).unwrap_or(&[]);
        let listed = ListedRecords { bytes: &self.bytes, begin: packet.begin, records };
        let (stamp, missed) = (packet.stamp, packet.missed);
        Some((
            packet.offset,
            Packet { stamp, missed, records: Records::Listed(listed), only: None },
        ))
    }
}

/// Consecutive records of a CPU: events can only be lost before the first.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Start time, which is not after its first record; on the buffer's clock.
    pub stamp: u64,
    /// Losses before the packet.
    pub missed: Missed,
    records: Records<'a>,
    /// The selected records; `None` selects all.
    only: Option<StreamPart<'a>>,
}

#[derive(Clone, Copy, Debug)]
enum Records<'a> {
    Page(Page<'a>),
    Listed(ListedRecords<'a>),
}

#[derive(Clone, Copy, Debug)]
struct ListedRecords<'a> {
    bytes: &'a [u8],
    begin: usize,
    records: &'a [Listed],
}

impl<'a> From<Page<'a>> for Packet<'a> {
    fn from(page: Page<'a>) -> Self {
        Self { stamp: page.stamp, missed: page.missed, records: Records::Page(page), only: None }
    }
}

impl<'a> Packet<'a> {
    /// Calls `visit` with every record in order.
    ///
    /// # Errors
    /// If a record cannot be read, after the records before it have been visited; or if the clock
    /// runs back within the packet, after all records have been visited.
    #[inline]
    pub fn for_each(&self, visit: impl FnMut(Record<'a>)) -> Result<(), RecordDamage> {
        match &self.records {
            _ if self.only.is_some() => self.for_each_of_part(visit),
            Records::Page(page) => page.for_each(visit),
            Records::Listed(listed) => listed.for_each(visit),
        }
    }

    #[cold]
    fn for_each_of_part(&self, mut visit: impl FnMut(Record<'a>)) -> Result<(), RecordDamage> {
        let is_in = |record: &Record<'_>| self.only.is_none_or(|part| part.holds(record));
        let visit = |record: Record<'a>| {
            if is_in(&record) {
                visit(record);
            }
        };
        match &self.records {
            Records::Page(page) => page.for_each(visit),
            Records::Listed(listed) => listed.for_each(visit),
        }
    }

    /// Selects the records in a part of the recording.
    pub(crate) fn within(self, part: StreamPart<'a>) -> Self {
        Self { only: Some(part), ..self }
    }

    /// Whether it has all records of a ring-buffer page.
    #[inline]
    #[must_use]
    pub fn is_page(&self) -> bool {
        self.only.is_none() && matches!(self.records, Records::Page(_))
    }

    /// [`Packet::for_each`] for callers that know at compile time the recorded byte order (`BIG`:
    /// big endian) and the result of [`Packet::is_page`] (`PAGE`; otherwise nothing is visited).
    /// The visitor is then compiled into a single loop: two loops made reading exits 4% slower.
    ///
    /// # Errors
    /// As for [`Packet::for_each`].
    #[inline(always)]
    pub fn for_each_in<const BIG: bool, const PAGE: bool>(
        &self,
        visit: impl FnMut(Record<'a>),
    ) -> Result<(), RecordDamage> {
        match &self.records {
            Records::Page(page) if PAGE => page.for_each_in::<BIG>(visit),
            Records::Listed(listed) if !PAGE && self.only.is_none() => listed.for_each(visit),
            _ if !PAGE => self.for_each_of_part(visit),
            _ => Ok(()),
        }
    }
}

impl<'a> ListedRecords<'a> {
    #[inline(always)]
    fn for_each(&self, mut visit: impl FnMut(Record<'a>)) -> Result<(), RecordDamage> {
        let (mut begin, mut last, mut back) = (self.begin, None, None);
        for &Listed { stamp, end } in self.records {
            visit(Record { stamp, payload: self.bytes.get(begin..end).unwrap_or(&[]) });
            begin = end;
            if let Some(from) = last.replace(stamp).filter(|&from| stamp < from) {
                back.get_or_insert(StepBack { from, to: stamp });
            }
        }
        back.map_or(Ok(()), |step| Err(RecordDamage::RunsBack(step)))
    }
}

/// The packets of a list, each with its offset in the file.
#[derive(Clone, Debug)]
pub(crate) struct ListedPackets<'a> {
    list: &'a RecordList,
    next: usize,
}

impl<'a> ListedPackets<'a> {
    pub(crate) fn new(list: &'a RecordList) -> Self {
        Self { list, next: 0 }
    }
}

impl<'a> Iterator for ListedPackets<'a> {
    type Item = (u64, Packet<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let packet = self.list.packet(self.next)?;
        self.next = self.next.saturating_add(1);
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamps(packet: &Packet<'_>) -> (Vec<(u64, Vec<u8>)>, bool) {
        let mut seen = Vec::new();
        let read = packet.for_each(|record| seen.push((record.stamp, record.payload.to_vec())));
        (seen, read.is_ok())
    }

    #[test]
    fn a_loss_begins_a_packet() {
        let mut list = RecordList::default();
        list.push(5, 100, |out| out.push(1));
        list.push(7, 120, |out| out.extend([2, 3]));
        list.missed(Missed::Events(4), 9, 140);
        list.push(9, 160, |out| out.push(4));
        list.missed(Missed::Unknown, 9, 180);
        let packets: Vec<_> = ListedPackets::new(&list).collect();
        let heads: Vec<_> =
            packets.iter().map(|(offset, packet)| (*offset, packet.stamp, packet.missed)).collect();
        let expected =
            [(100, 5, Missed::Nothing), (140, 9, Missed::Events(4)), (180, 9, Missed::Unknown)];
        assert_eq!(heads, expected);
        let records: Vec<_> = packets.iter().map(|(_, packet)| stamps(packet)).collect();
        let expected = [
            (vec![(5, vec![1]), (7, vec![2, 3])], true),
            (vec![(9, vec![4])], true),
            (vec![], true),
        ];
        assert_eq!(records, expected);
    }

    #[test]
    fn a_clock_that_runs_back_is_reported_and_all_records_are_read() {
        let mut list = RecordList::default();
        for stamp in [5, 3, 4] {
            list.push(stamp, 0, |out| out.push(0));
        }
        let (_, packet) = ListedPackets::new(&list).next().unwrap();
        assert_eq!(stamps(&packet).0.len(), 3);
        let step = StepBack { from: 5, to: 3 };
        assert_eq!(packet.for_each(|_| ()), Err(RecordDamage::RunsBack(step)));
    }
}
