//! Ring-buffer pages that can be copied to a later time.

use anyhow::{Context, Result, ensure};
use raw_bytes::{Abi, ByteOrder, LongSize};
use tracedat::{ChunkReader, TraceDat};

const COMMIT_SIZE_MASK: u64 = (1 << 27) - 1;
const MISSED_EVENTS: u32 = 1 << 31;
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// The bits of a time that an absolute stamp stores.
const STAMP_MASK: u64 = (1 << 59) - 1;

/// The pages of one CPU of one buffer.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) buffer: String,
    pub(super) cpu: u32,
    pub(super) pages: Vec<Page>,
}

/// Reads every page of the recording.
pub(super) fn read_lanes(input: &[u8], recording: &TraceDat) -> Result<Vec<Lane>> {
    let mut reader = ChunkReader::new();
    let mut lanes = Vec::new();
    for buffer in &recording.buffers {
        for data in &buffer.cpus {
            let mut pages = Vec::new();
            for chunk in &data.chunks(input).list {
                let bytes = reader.read(input, chunk).context("a chunk of pages is damaged")?;
                for page in bytes.chunks_exact(buffer.page_size as usize) {
                    pages.push(Page::scan(recording.abi(), page)?);
                }
            }
            lanes.push(Lane { buffer: buffer.name.clone(), cpu: data.cpu, pages });
        }
    }
    Ok(lanes)
}

/// A page and the positions of its times.
#[derive(Debug)]
pub(super) struct Page {
    abi: Abi,
    pub(super) bytes: Vec<u8>,
    /// Time stamp in its header.
    pub(super) start: u64,
    /// Time after its last record.
    pub(super) end: u64,
    /// Absolute stamps: offset in the page, and time.
    stamps: Vec<(usize, u64)>,
}

/// A record: its offset, type, time delta and length.
struct Record {
    type_len: u32,
    time: u64,
    len: usize,
}

impl Page {
    /// Finds every time on the page.
    pub(super) fn scan(abi: Abi, bytes: &[u8]) -> Result<Self> {
        let head = 8 + abi.long.bytes();
        let start = abi.order.u64_at(bytes, 0).context("page without a timestamp")?;
        let commit = abi.order.uint_at(bytes, 8, abi.long.bytes()).context("page without size")?;
        let end = head + (commit & COMMIT_SIZE_MASK) as usize;
        ensure!(end <= bytes.len(), "a page claims more data than it holds");
        let mut page = Self { abi, bytes: bytes.to_vec(), start, end: start, stamps: Vec::new() };
        let mut at = head;
        while at < end {
            let record = record(abi.order, &bytes[..end], at).context("a record is cut short")?;
            if record.type_len == TIME_STAMP {
                page.end = page.end & !STAMP_MASK | record.time;
                page.stamps.push((at, page.end));
            } else {
                page.end = page.end.wrapping_add(record.time);
            }
            at += record.len;
        }
        Ok(page)
    }

    /// Copies the page to `out`, with all times shifted by `shift`.
    pub(super) fn copy_later(&self, shift: u64, lost_before: bool, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&self.bytes);
        put_u64(self.abi.order, out, 0, self.start + shift);
        for &(at, stamp) in &self.stamps {
            let low = (stamp + shift) & STAMP_MASK;
            put_u32(self.abi.order, out, at, stamp_head(self.abi.order, low));
            put_u32(self.abi.order, out, at + 4, (low >> 27) as u32);
        }
        if lost_before {
            // The flag is in the low word of `commit`.
            let at = match (self.abi.order, self.abi.long) {
                (ByteOrder::Big, LongSize::Eight) => 12,
                _ => 8,
            };
            let word = self.abi.order.u32_at(out, at).unwrap_or(0);
            put_u32(self.abi.order, out, at, word | MISSED_EVENTS);
        }
    }
}

fn stamp_head(order: ByteOrder, stamp: u64) -> u32 {
    let delta = (stamp & ((1 << 27) - 1)) as u32;
    match order {
        ByteOrder::Little => delta << 5 | TIME_STAMP,
        ByteOrder::Big => TIME_STAMP << 27 | delta,
    }
}

/// The record at `at`; a padding record with delta 0 extends to the end of the page.
fn record(order: ByteOrder, bytes: &[u8], at: usize) -> Option<Record> {
    let head = order.u32_at(bytes, at)?;
    let (type_len, delta) = match order {
        ByteOrder::Little => (head & 31, head >> 5),
        ByteOrder::Big => (head >> 27, head & ((1 << 27) - 1)),
    };
    let time = u64::from(delta);
    if type_len == PADDING && delta == 0 {
        return Some(Record { type_len, time, len: bytes.len() - at });
    }
    if (1..PADDING).contains(&type_len) {
        return Some(Record { type_len, time, len: 4 + type_len as usize * 4 });
    }
    let word = order.u32_at(bytes, at + 4)?;
    Some(match type_len {
        TIME_EXTEND | TIME_STAMP => {
            Record { type_len, time: (u64::from(word) << 27) + time, len: 8 }
        }
        _ => Record { type_len, time, len: 4 + (word as usize).max(4).next_multiple_of(4) },
    })
}

fn put_u32(order: ByteOrder, out: &mut [u8], at: usize, value: u32) {
    out[at..at + 4].copy_from_slice(&match order {
        ByteOrder::Little => value.to_le_bytes(),
        ByteOrder::Big => value.to_be_bytes(),
    });
}

fn put_u64(order: ByteOrder, out: &mut [u8], at: usize, value: u64) {
    out[at..at + 8].copy_from_slice(&match order {
        ByteOrder::Little => value.to_le_bytes(),
        ByteOrder::Big => value.to_be_bytes(),
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::{MissedEvents, PageBuilder, naive};

    fn abis() -> impl Iterator<Item = Abi> {
        [ByteOrder::Little, ByteOrder::Big]
            .into_iter()
            .flat_map(|order| [LongSize::Four, LongSize::Eight].map(|long| Abi { order, long }))
    }

    fn built(abi: Abi) -> testkit::BuiltPage {
        let mut page = PageBuilder::new(abi, 4096, 1_000);
        page.event(5, b"abcd").time_extend(1 << 30).long_event(7, &[1; 120]);
        page.absolute_stamp(1 << 40).event(1, b"efgh").discarded(3, 20).event(2, b"ijkl");
        page.tail_padding();
        page.build()
    }

    #[test]
    fn every_time_moves_and_nothing_else() {
        for abi in abis() {
            let original = built(abi);
            let page = Page::scan(abi, &original.bytes).unwrap();
            assert_eq!((page.start, page.end), (original.start, original.end));
            let mut later = Vec::new();
            page.copy_later(1 << 35, false, &mut later);
            let mut expected = original.records;
            expected.iter_mut().for_each(|record| record.stamp += 1 << 35);
            assert_eq!(naive::decode(abi, &later).unwrap().records, expected);
            page.copy_later(0, false, &mut later);
            assert_eq!(later, original.bytes);
        }
    }

    #[test]
    fn a_seam_is_a_loss() {
        for abi in abis() {
            let original = built(abi);
            let mut later = Vec::new();
            Page::scan(abi, &original.bytes).unwrap().copy_later(9, true, &mut later);
            let found = naive::decode(abi, &later).unwrap();
            assert_eq!(found.missed, Some(MissedEvents::Uncounted));
            assert_eq!(found.records.len(), original.records.len());
        }
    }
}
