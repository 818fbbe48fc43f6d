//! Builds a ring-buffer page record by record, and remembers the records that a reader must find.

use raw_bytes::Abi;

use crate::{bytes, record_head};

/// Fills the unused rest of a page: the kernel leaves stale data there, not zeros.
const STALE: u8 = 0xa5;

/// A data record that a reader must report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedRecord {
    /// Time on the buffer's clock.
    pub stamp: u64,
    /// Payload as stored: padded with zeros to a multiple of four bytes.
    pub payload: Vec<u8>,
}

/// Events that the kernel dropped before a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissedEvents {
    /// The kernel only reports that events were lost.
    Uncounted,
    /// The kernel stored the number after the data.
    Counted(u64),
}

/// A finished page and its expected content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltPage {
    /// The page, of full page size.
    pub bytes: Vec<u8>,
    /// The data records in order.
    pub records: Vec<ExpectedRecord>,
    /// Events lost before the page.
    pub missed: Option<MissedEvents>,
    /// Time stamp in the page header.
    pub start: u64,
    /// Time after the last record of any type.
    pub end: u64,
    /// A record of any type has an earlier time than its predecessor.
    pub runs_back: bool,
}

/// Builds a page. Every method that adds a record panics if the page has no room for it; check
/// [`PageBuilder::room`] where that can happen.
#[derive(Clone, Debug)]
pub struct PageBuilder {
    abi: Abi,
    page_size: usize,
    start: u64,
    now: u64,
    data: Vec<u8>,
    records: Vec<ExpectedRecord>,
    missed: Option<MissedEvents>,
    closed: bool,
    runs_back: bool,
}

impl PageBuilder {
    /// An empty page of `page_size` bytes with the header stamp `start`. The long size of `abi` is
    /// the size of the `commit` field.
    #[must_use]
    pub fn new(abi: Abi, page_size: usize, start: u64) -> Self {
        let head = 8 + bytes::long_bytes(abi);
        assert!(page_size > head && page_size.is_multiple_of(4), "no page of {page_size} bytes");
        Self {
            abi,
            page_size,
            start,
            now: start,
            data: Vec::new(),
            records: Vec::new(),
            missed: None,
            closed: false,
            runs_back: false,
        }
    }

    fn set_now(&mut self, now: u64) {
        self.runs_back |= now < self.now;
        self.now = now;
    }

    /// Bytes left for records, including their first words.
    #[must_use]
    pub fn room(&self) -> usize {
        if self.closed { 0 } else { self.capacity() - self.data.len() }
    }

    /// Size of a data record with a payload of `len` bytes.
    #[must_use]
    pub const fn event_size(len: usize) -> usize {
        let length_word = if len == 0 || len > record_head::MAX_SHORT_DATA { 4 } else { 0 };
        4 + length_word + len.next_multiple_of(4)
    }

    /// Time after the last record.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Adds a data record, in the short form (length in the first word) if the payload fits.
    pub fn event(&mut self, delta: u32, payload: &[u8]) -> &mut Self {
        if payload.is_empty() || payload.len() > record_head::MAX_SHORT_DATA {
            return self.long_event(delta, payload);
        }
        let words = u32::try_from(payload.len().div_ceil(4)).unwrap_or(u32::MAX);
        self.head(words, delta).data_record(delta, payload)
    }

    /// Adds a data record in the long form, with a length word that includes itself.
    pub fn long_event(&mut self, delta: u32, payload: &[u8]) -> &mut Self {
        self.head(record_head::LONG_DATA, delta)
            .word(payload.len().next_multiple_of(4) + 4)
            .data_record(delta, payload)
    }

    /// Adds a time extend of `delta` (at most 59 bits).
    pub fn time_extend(&mut self, delta: u64) -> &mut Self {
        self.set_now(self.now.wrapping_add(delta));
        self.time_words(record_head::TIME_EXTEND, delta)
    }

    /// Adds an absolute stamp, which stores the low 59 bits: the upper 5 must equal those of the
    /// previous time.
    pub fn absolute_stamp(&mut self, stamp: u64) -> &mut Self {
        assert_eq!(stamp >> 59, self.now >> 59, "the high bits of a stamp can't change");
        self.set_now(stamp);
        self.time_words(record_head::TIME_STAMP, stamp & ((1 << 59) - 1))
    }

    /// Adds an event that the kernel discarded after it had reserved `len` bytes. Its delta counts,
    /// its data does not. The delta can't be 0, which would end the page.
    pub fn discarded(&mut self, delta: u32, len: usize) -> &mut Self {
        assert_ne!(delta, 0, "a discarded event has a delta");
        let len = len.next_multiple_of(4);
        self.set_now(self.now.wrapping_add(u64::from(delta)));
        self.head(record_head::PADDING, delta).word(len + 4).append(&vec![STALE; len])
    }

    /// Fills the rest of the page as the kernel does if the next event does not fit: a padding
    /// record with a length and delta 1, or with delta 0 if there is no room for a length.
    pub fn tail_padding(&mut self) -> &mut Self {
        match self.room() {
            0 => self,
            4 => self.null_padding(),
            room => {
                self.discarded(1, room - 8);
                self.closed = true;
                self
            }
        }
    }

    /// Fills the rest of the page with a padding record of delta 0, which ends the page.
    pub fn null_padding(&mut self) -> &mut Self {
        self.head(record_head::PADDING, 0);
        self.append(&vec![STALE; self.room()]);
        self.closed = true;
        self
    }

    /// Marks that events were lost before this page.
    ///
    /// A counted loss needs room for a `long` after the data; [`PageBuilder::build`] panics without
    /// it. The kernel leaves the count out in that case.
    pub fn missed(&mut self, missed: MissedEvents) -> &mut Self {
        self.missed = Some(missed);
        self
    }

    #[must_use]
    pub fn build(self) -> BuiltPage {
        let mut page = bytes::uint(self.abi.order, self.start, 8);
        page.extend(bytes::long(self.abi, self.commit()));
        page.extend(&self.data);
        if let Some(MissedEvents::Counted(count)) = self.missed {
            page.extend(bytes::long(self.abi, count));
        }
        assert!(page.len() <= self.page_size, "no room for the number of missed events");
        page.resize(self.page_size, STALE);
        BuiltPage {
            bytes: page,
            records: self.records,
            missed: self.missed,
            start: self.start,
            end: self.now,
            runs_back: self.runs_back,
        }
    }

    fn commit(&self) -> u64 {
        let flags = match self.missed {
            None => 0,
            Some(MissedEvents::Uncounted) => 1 << 31,
            Some(MissedEvents::Counted(_)) => 1 << 31 | 1 << 30,
        };
        self.data.len() as u64 | flags
    }

    fn capacity(&self) -> usize {
        self.page_size - 8 - bytes::long_bytes(self.abi)
    }

    fn head(&mut self, type_len: u32, delta: u32) -> &mut Self {
        let head = record_head::encode(self.abi.order, type_len, delta);
        self.append(&head)
    }

    fn word(&mut self, value: usize) -> &mut Self {
        let value = u32::try_from(value).unwrap_or_else(|_| panic!("{value} fits no word"));
        let word = bytes::word(self.abi.order, value);
        self.append(&word)
    }

    fn time_words(&mut self, type_len: u32, time: u64) -> &mut Self {
        assert!(time < 1 << 59, "{time} takes more than 59 bits");
        self.head(type_len, (time & u64::from(record_head::MAX_DELTA)) as u32)
            .word((time >> 27) as usize)
    }

    fn data_record(&mut self, delta: u32, payload: &[u8]) -> &mut Self {
        self.set_now(self.now.wrapping_add(u64::from(delta)));
        let mut payload = payload.to_vec();
        payload.resize(payload.len().next_multiple_of(4), 0);
        self.append(&payload);
        self.records.push(ExpectedRecord { stamp: self.now, payload });
        self
    }

    fn append(&mut self, bytes: &[u8]) -> &mut Self {
        assert!(bytes.len() <= self.room(), "{} bytes, room for {}", bytes.len(), self.room());
        self.data.extend_from_slice(bytes);
        self
    }
}
