//! The header of a ring-buffer page: time stamp, committed size, and losses before it.

use raw_bytes::{ByteOrder, LongSize, bytes};

use crate::ringbuf::record::{Record, RecordDamage, Records, walk};

/// Bits of `commit` that hold the size of the data (`COMMIT_MASK`).
const COMMIT_SIZE_MASK: u64 = (1 << 27) - 1;
/// Events were lost before this page (`RB_MISSED_EVENTS`).
pub const MISSED_EVENTS: u64 = 1 << 31;
/// The number of lost events is stored after the data (`RB_MISSED_STORED`).
pub const MISSED_STORED: u64 = 1 << 30;

/// Layout of the pages of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLayout {
    /// Byte order of the recorded machine.
    pub order: ByteOrder,
    /// Size of the `commit` field, a `long` of the kernel.
    pub commit: LongSize,
    /// Size of a page (sub-buffer) in bytes, including its header.
    pub page_size: usize,
}

impl PageLayout {
    /// Offset of the records: after the eight-byte stamp and `commit`.
    #[must_use]
    pub const fn data_offset(&self) -> usize {
        match self.commit {
            LongSize::Four => 12,
            LongSize::Eight => 16,
        }
    }

    fn commit_at(&self, bytes: &[u8], offset: usize) -> Option<u64> {
        self.order.uint_at(bytes, offset, self.commit.bytes())
    }
}

/// Losses between the previous page and this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// No loss.
    Nothing,
    /// An unknown number of events was lost.
    Unknown,
    /// This many events were lost.
    Events(u64),
}

/// A page that cannot be read, or not to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageDamage {
    /// The page has fewer bytes than a page header.
    #[error("a page of {} is too small for its header", bytes(*have))]
    NoHead {
        /// Bytes present.
        have: usize,
    },
    /// `commit` claims more data than the page has.
    #[error("the page claims {} of data, but has room for {room}", bytes(*committed))]
    Overcommitted {
        /// Size according to `commit`.
        committed: u64,
        /// Space in the page.
        room: usize,
    },
}

/// A borrowed ring-buffer page.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// Time stamp of the page, the base of the first record's delta; on the buffer's clock.
    pub stamp: u64,
    /// Losses before the page.
    pub missed: Missed,
    data: &'a [u8],
    order: ByteOrder,
}

impl<'a> Page<'a> {
    /// Reads the header of the page in `bytes` (a page, or the rest of a shorter file).
    ///
    /// # Errors
    /// If the header does not fit or claims more data than there is.
    pub fn parse(bytes: &'a [u8], layout: &PageLayout) -> Result<Self, PageDamage> {
        let no_head = PageDamage::NoHead { have: bytes.len() };
        let stamp = layout.order.u64_at(bytes, 0).ok_or(no_head)?;
        let commit = layout.commit_at(bytes, 8).ok_or(no_head)?;
        let body = bytes.get(layout.data_offset()..).ok_or(no_head)?;
        let committed = commit & COMMIT_SIZE_MASK;
        let size = usize::try_from(committed).unwrap_or(usize::MAX);
        let data =
            body.get(..size).ok_or(PageDamage::Overcommitted { committed, room: body.len() })?;
        let missed = if commit & MISSED_EVENTS == 0 {
            Missed::Nothing
        } else if commit & MISSED_STORED == 0 {
            Missed::Unknown
        } else {
            layout.commit_at(body, size).map_or(Missed::Unknown, Missed::Events)
        };
        Ok(Self { stamp, missed, data, order: layout.order })
    }

    /// Bytes of records on the page.
    #[must_use]
    pub fn data_len(&self) -> usize {
        self.data.len()
    }

    /// The records in order.
    #[must_use]
    pub fn records(&self) -> Records<'a> {
        Records::new(self.data, self.order, self.stamp)
    }

    /// Calls `visit` with every record in order: as [`Page::records`], but optimized for hot loops.
    ///
    /// # Errors
    /// If a record does not fit into the page, after the records before it have been visited; or if
    /// the clock runs back on the page, after all records have been visited.
    #[inline]
    pub fn for_each(&self, visit: impl FnMut(Record<'a>)) -> Result<(), RecordDamage> {
        match self.order {
            ByteOrder::Little => self.for_each_in::<false>(visit),
            ByteOrder::Big => self.for_each_in::<true>(visit),
        }
    }

    /// [`Page::for_each`] for callers that know the byte order (`BIG`: big endian) at compile time,
    /// so that the visitor is compiled into the loop only once.
    ///
    /// # Errors
    /// If a record does not fit into the page, which soon happens with the wrong byte order.
    #[inline(always)]
    pub fn for_each_in<const BIG: bool>(
        &self,
        visit: impl FnMut(Record<'a>),
    ) -> Result<(), RecordDamage> {
        walk::<BIG>(self.data, self.stamp, visit)
    }
}
