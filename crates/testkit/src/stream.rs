//! Spreads events over pages as the kernel's writer does.

use raw_bytes::Abi;

use crate::page::{BuiltPage, MissedEvents, PageBuilder};
use crate::record_head::MAX_DELTA;

/// Bytes of a time extend.
const TIME_EXTEND_SIZE: usize = 8;

/// Builds the pages of a CPU from events with absolute times.
#[derive(Clone, Debug)]
pub struct StreamBuilder {
    abi: Abi,
    page_size: usize,
    pages: Vec<BuiltPage>,
    open: Option<PageBuilder>,
    missed: Option<MissedEvents>,
}

impl StreamBuilder {
    /// A CPU's buffer with pages of `page_size` bytes.
    #[must_use]
    pub fn new(abi: Abi, page_size: usize) -> Self {
        Self { abi, page_size, pages: Vec::new(), open: None, missed: None }
    }

    /// Adds an event at `stamp`, which must not be earlier than the previous event. Starts a new
    /// page if the event does not fit, and writes a time extend if the delta does not fit.
    pub fn event(&mut self, stamp: u64, payload: &[u8]) -> &mut Self {
        let needed = PageBuilder::event_size(payload.len()) + TIME_EXTEND_SIZE;
        if self.open.as_ref().is_some_and(|page| page.room() < needed) {
            self.end_page();
        }
        let (abi, page_size, missed) = (self.abi, self.page_size, self.missed.take());
        let page = self.open.get_or_insert_with(|| {
            let mut page = PageBuilder::new(abi, page_size, stamp);
            if let Some(missed) = missed {
                page.missed(missed);
            }
            page
        });
        let delta = stamp
            .checked_sub(page.now())
            .unwrap_or_else(|| panic!("event at {stamp} after one at {}", page.now()));
        match u32::try_from(delta) {
            Ok(delta) if delta <= MAX_DELTA => page.event(delta, payload),
            _ => page.time_extend(delta).event(0, payload),
        };
        self
    }

    /// Ends the page and marks that events were lost before the next page.
    pub fn lose(&mut self, missed: MissedEvents) -> &mut Self {
        self.end_page();
        self.missed = Some(missed);
        self
    }

    /// Ends the page; the next event starts a new page.
    pub fn end_page(&mut self) -> &mut Self {
        self.pages.extend(self.open.take().map(PageBuilder::build));
        self
    }

    /// The pages in order.
    #[must_use]
    pub fn build(mut self) -> Vec<BuiltPage> {
        self.end_page();
        self.pages
    }

    /// The bytes of all pages in order, as a recording stores the data of a CPU.
    #[must_use]
    pub fn bytes(self) -> Vec<u8> {
        self.build().into_iter().flat_map(|page| page.bytes).collect()
    }
}
