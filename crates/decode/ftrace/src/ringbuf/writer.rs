//! Writes records to pages: for recordings with removed events or corrected times.
//!
//! A page begins with the time of its first record, so times may run back from page to page: a
//! record that is earlier than its predecessor starts a new page.

use raw_bytes::{ByteOrder, LongSize};

use crate::ringbuf::page::{MISSED_EVENTS, MISSED_STORED, Missed, PageLayout};
use crate::ringbuf::record::{DATA_TYPE_LEN_MAX, DELTA_BITS, TIME_EXTEND};

/// A record that no page of the layout can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a record of {len} bytes does not fit a page of {page_size}")]
pub struct TooLong {
    /// Bytes of the record.
    pub len: usize,
    /// Bytes of the page.
    pub page_size: usize,
}

/// Writes records to pages.
#[derive(Clone, Debug)]
pub struct PageWriter {
    layout: PageLayout,
    /// The current page including its header; empty if there is none.
    page: Vec<u8>,
    now: u64,
    /// Losses before the current page.
    missed: Missed,
    /// Losses before the next record.
    pending: Missed,
}

impl PageWriter {
    /// A writer of pages with this layout.
    #[must_use]
    pub fn new(layout: PageLayout) -> Self {
        let (missed, pending) = (Missed::Nothing, Missed::Nothing);
        Self { layout, page: Vec::new(), now: 0, missed, pending }
    }

    /// Events were lost before the next record, which will start a page.
    pub fn missed(&mut self, missed: Missed) {
        self.pending = self.pending.and(missed);
    }

    /// Adds a record with its time; finished pages go to `out`.
    ///
    /// # Errors
    /// If no page can hold it; nothing is written in this case.
    pub fn push(&mut self, stamp: u64, payload: &[u8], out: &mut Vec<u8>) -> Result<(), TooLong> {
        let page_size = self.layout.page_size;
        let too_long = TooLong { len: payload.len(), page_size };
        let words = payload.len().div_ceil(4);
        let body = words.saturating_mul(4);
        let long = words == 0 || words > DATA_TYPE_LEN_MAX as usize;
        let size = body.saturating_add(if long { 8 } else { 4 });
        if size > page_size.saturating_sub(self.layout.data_offset()) {
            return Err(too_long);
        }
        // A time extend has 59 bits; a larger delta starts a new page.
        let near = stamp.checked_sub(self.now).filter(|delta| *delta < 1 << 59);
        let extend = near.is_some_and(|delta| delta >> DELTA_BITS != 0);
        let size = size.saturating_add(if extend { 8 } else { 0 });
        let fits = self.page.len().saturating_add(size) <= page_size;
        let is_page_open = !self.page.is_empty() && self.pending == Missed::Nothing;
        let delta = match near.filter(|_| fits && is_page_open) {
            Some(delta) => delta,
            None => {
                self.flush(out);
                self.begin(stamp);
                0
            }
        };
        let delta = self.extended(delta);
        let length = u32::try_from(words).unwrap_or(u32::MAX);
        self.head(if long { 0 } else { length }, delta);
        if long {
            self.word(length.saturating_mul(4).saturating_add(4));
        }
        self.page.extend_from_slice(payload);
        self.page.resize(self.page.len().next_multiple_of(4), 0);
        self.now = stamp;
        Ok(())
    }

    /// Writes the current page to `out`, if there is one.
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        if self.page.is_empty() {
            return;
        }
        let data = self.page.len().saturating_sub(self.layout.data_offset()) as u64;
        let stored = match self.missed {
            Missed::Nothing => data,
            Missed::Unknown => data | MISSED_EVENTS,
            // As in the kernel, the count follows the data if there is room.
            Missed::Events(count) => {
                let room = self.layout.page_size.saturating_sub(self.page.len());
                if room < self.layout.commit.bytes() {
                    data | MISSED_EVENTS
                } else {
                    self.long(count);
                    data | MISSED_EVENTS | MISSED_STORED
                }
            }
        };
        let mut commit = Vec::new();
        put_long(&mut commit, self.layout, stored);
        let at = 8..self.layout.data_offset();
        if let Some(place) = self.page.get_mut(at) {
            place.copy_from_slice(&commit);
        }
        self.page.resize(self.layout.page_size, 0);
        out.append(&mut self.page);
    }

    /// Losses after the last record, which no page header can report.
    #[must_use]
    pub fn pending_loss(&self) -> Missed {
        self.pending
    }

    fn begin(&mut self, stamp: u64) {
        self.missed = std::mem::replace(&mut self.pending, Missed::Nothing);
        self.now = stamp;
        match self.layout.order {
            ByteOrder::Little => self.page.extend(stamp.to_le_bytes()),
            ByteOrder::Big => self.page.extend(stamp.to_be_bytes()),
        }
        self.long(0);
    }

    /// Writes the part of a delta that does not fit into the first word of a record; returns the
    /// rest.
    fn extended(&mut self, delta: u64) -> u32 {
        let low = (delta & ((1 << DELTA_BITS) - 1)) as u32;
        if delta >> DELTA_BITS == 0 {
            return low;
        }
        self.head(TIME_EXTEND, low);
        self.word((delta >> DELTA_BITS) as u32);
        0
    }

    fn head(&mut self, type_len: u32, delta: u32) {
        self.word(match self.layout.order {
            ByteOrder::Little => (delta << 5) | type_len,
            ByteOrder::Big => (type_len << DELTA_BITS) | delta,
        });
    }

    fn word(&mut self, word: u32) {
        match self.layout.order {
            ByteOrder::Little => self.page.extend(word.to_le_bytes()),
            ByteOrder::Big => self.page.extend(word.to_be_bytes()),
        }
    }

    fn long(&mut self, value: u64) {
        put_long(&mut self.page, self.layout, value);
    }
}

/// Appends a number with the size of the kernel's `long`.
fn put_long(out: &mut Vec<u8>, layout: PageLayout, value: u64) {
    let short = value as u32;
    match (layout.commit, layout.order) {
        (LongSize::Eight, ByteOrder::Little) => out.extend(value.to_le_bytes()),
        (LongSize::Eight, ByteOrder::Big) => out.extend(value.to_be_bytes()),
        (LongSize::Four, ByteOrder::Little) => out.extend(short.to_le_bytes()),
        (LongSize::Four, ByteOrder::Big) => out.extend(short.to_be_bytes()),
    }
}

impl Missed {
    /// The sum of both losses.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nothing, loss) | (loss, Self::Nothing) => loss,
            (Self::Events(count), Self::Events(other)) => Self::Events(count.saturating_add(other)),
            _ => Self::Unknown,
        }
    }
}
