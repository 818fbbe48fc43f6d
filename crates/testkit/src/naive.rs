//! A slow and obvious decoder of ring-buffer pages: the oracle for the fast decoder.

use raw_bytes::{Abi, ByteOrder, LongSize};

use crate::page::{ExpectedRecord, MissedEvents};

/// The content of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NaivePage {
    /// Time stamp in the page header.
    pub start: u64,
    /// Events lost before the page.
    pub missed: Option<MissedEvents>,
    /// Data records in order, up to the first damage.
    pub records: Vec<ExpectedRecord>,
    /// Time after the last record of any type.
    pub end: u64,
    /// A record does not fit into the page's data, or time runs back.
    pub damaged: bool,
}

/// Decodes `page`; `None` if the header does not fit or claims more data than the page has.
///
/// A single function from top to bottom, for comparison with a description of the format.
#[must_use]
pub fn decode(abi: Abi, page: &[u8]) -> Option<NaivePage> {
    let commit_bytes = if abi.long == LongSize::Four { 4 } else { 8 };
    let start = number(abi.order, page, 0, 8)?;
    let commit = number(abi.order, page, 8, commit_bytes)?;
    let body = &page[8 + commit_bytes..];

    // Bits 0 to 26 of the commit word are the size; bits 31 and 30 are flags for lost events.
    let size = (commit & 0x07ff_ffff) as usize;
    if size > body.len() {
        return None;
    }
    let lost = commit & 0x8000_0000 != 0;
    let counted = commit & 0x4000_0000 != 0;
    let missed = lost.then(|| match number(abi.order, body, size, commit_bytes) {
        Some(count) if counted => MissedEvents::Counted(count),
        _ => MissedEvents::Uncounted,
    });

    let data = &body[..size];
    let mut found = NaivePage { start, missed, records: Vec::new(), end: start, damaged: false };
    let (mut at, mut latest, mut runs_back) = (0, start, false);
    while at < data.len() {
        runs_back |= found.end < latest;
        latest = found.end;
        let Some(head) = number(abi.order, data, at, 4) else {
            found.damaged = true;
            break;
        };
        let (type_len, delta) = match abi.order {
            ByteOrder::Little => (head % 32, head / 32),
            ByteOrder::Big => (head >> 27, head & 0x07ff_ffff),
        };
        at += 4;

        // A padding record with delta 0 ends the page.
        if type_len == 29 && delta == 0 {
            break;
        }

        // `type_len` is the length in words of 4 bytes; there is no second word.
        if (1..=28).contains(&type_len) {
            let len = type_len as usize * 4;
            if at + len > data.len() {
                found.damaged = true;
                break;
            }
            found.end = found.end.wrapping_add(delta);
            let payload = data[at..at + len].to_vec();
            found.records.push(ExpectedRecord { stamp: found.end, payload });
            at += len;
            continue;
        }

        // All other types have a second word: more time, or a length that includes itself.
        let Some(second) = number(abi.order, data, at, 4) else {
            found.damaged = true;
            break;
        };
        let time = (second << 27).wrapping_add(delta);
        if type_len == 30 {
            found.end = found.end.wrapping_add(time);
            at += 4;
            continue;
        }
        if type_len == 31 {
            // The stamp has 59 bits; the upper five come from the previous time.
            let low = (1 << 59) - 1;
            found.end = (found.end & !low) | (time & low);
            at += 4;
            continue;
        }
        let mut len = second.max(4) as usize - 4;
        if type_len == 0 {
            len = len.next_multiple_of(4);
        }
        if at + 4 + len > data.len() {
            found.damaged = true;
            break;
        }
        // A discarded event is padding with a length: its delta counts, its data does not.
        found.end = found.end.wrapping_add(delta);
        if type_len == 0 {
            let payload = data[at + 4..at + 4 + len].to_vec();
            found.records.push(ExpectedRecord { stamp: found.end, payload });
        }
        at += 4 + len;
    }
    found.damaged |= runs_back || found.end < latest;
    Some(found)
}

/// The unsigned number of `size` bytes at `at`; `None` if the data ends before.
fn number(order: ByteOrder, bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    if at + size > bytes.len() {
        return None;
    }
    let mut value = 0;
    for step in 0..size {
        let next = match order {
            ByteOrder::Big => at + step,
            ByteOrder::Little => at + size - 1 - step,
        };
        value = value << 8 | u64::from(bytes[next]);
    }
    Some(value)
}
