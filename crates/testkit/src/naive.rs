//! Decodes a ring-buffer page slowly and obviously: the oracle for the fast decoder.

use raw_bytes::{Abi, ByteOrder, LongSize};

use crate::page::{ExpectedRecord, MissedEvents};

/// What a page says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NaivePage {
    /// Stamp in the page's head.
    pub start: u64,
    /// What was lost before it.
    pub missed: Option<MissedEvents>,
    /// Its data records in order, those before the damage if there is any.
    pub records: Vec<ExpectedRecord>,
    /// Time after the last record of any kind.
    pub end: u64,
    /// A record does not fit the page's data, or the clock runs back.
    pub damaged: bool,
}

/// Decodes `page`; `None` when its head does not fit or claims more data than there is.
///
/// One function from top to bottom, so that it can be compared with a description of the format.
#[must_use]
pub fn decode(abi: Abi, page: &[u8]) -> Option<NaivePage> {
    let commit_bytes = if abi.long == LongSize::Four { 4 } else { 8 };
    let start = number(abi.order, page, 0, 8)?;
    let commit = number(abi.order, page, 8, commit_bytes)?;
    let body = &page[8 + commit_bytes..];

    // Bits 0 to 26 of the commit word are the size, 31 and 30 are set by losses.
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

        // A padding record without a delta voids the rest of the page.
        if type_len == 29 && delta == 0 {
            break;
        }

        // A length of multiples of four in the head, and no second word.
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

        // Every other kind has a second word: more time, or a length that counts itself.
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
            // The stamp has 59 bits; the five above them are those of the time before it.
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
        // A discarded event is padding with a length: its time counts, its data does not.
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

/// The unsigned number of `size` bytes at `at`; `None` when it is not all there.
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
