//! Counts the events of a CPU's pages while they are copied, to compare them with the kernel's count.

use ftrace::ringbuf::{Page, PageLayout};
use tracedat::Header;

/// Max page size: the kernel's pages have 4 to 64 KiB, but a guest may claim anything.
const MAX_PAGE_BYTES: usize = 1 << 20;

/// Events of a CPU.
#[derive(Debug)]
pub(crate) struct PageEvents {
    layout: PageLayout,
    page: Vec<u8>,
    events: u64,
}

impl PageEvents {
    /// For pages of a file with this header.
    pub(crate) fn new(header: &Header) -> Self {
        let page_size = header.page_size as usize;
        // The kernel's `long`: a 64-bit kernel has 64-bit commits whatever programs it runs.
        let layout = PageLayout { order: header.order, commit: header.user_long, page_size };
        Self { layout, page: Vec::new(), events: 0 }
    }

    /// Adds the next bytes of the pages.
    pub(crate) fn take(&mut self, mut bytes: &[u8]) {
        let page_size = self.layout.page_size.clamp(1, MAX_PAGE_BYTES);
        while !bytes.is_empty() {
            let room = page_size.saturating_sub(self.page.len()).min(bytes.len());
            let (part, rest) = bytes.split_at(room);
            self.page.extend_from_slice(part);
            bytes = rest;
            if self.page.len() >= page_size {
                self.count();
            }
        }
    }

    /// In a damaged page, counts the events before the damage.
    fn count(&mut self) {
        if let Ok(page) = Page::parse(&self.page, &self.layout) {
            let _ = page.for_each(|_| self.events += 1);
        }
        self.page.clear();
    }

    pub(crate) fn events(&self) -> u64 {
        self.events
    }
}

#[cfg(test)]
mod tests {
    use ftrace::ringbuf::{Missed, PageWriter};
    use tracefs::Texts;

    use super::*;
    use crate::pages_folder::header;

    #[test]
    fn events_are_counted_however_pages_are_cut() {
        let header = Header { page_size: 4096, ..header(&Texts::default()) };
        let mut counted = PageEvents::new(&header);
        let mut writer = PageWriter::new(counted.layout);
        let mut pages = Vec::new();
        for at in 0..1000 {
            writer.push(at, &[7; 40], &mut pages).unwrap();
        }
        writer.missed(Missed::Events(3));
        writer.flush(&mut pages);
        assert!(pages.len() > 2 * 4096 && pages.len().is_multiple_of(4096), "{}", pages.len());
        pages.chunks(1000).for_each(|part| counted.take(part));
        assert_eq!(counted.events(), 1000);
    }
}
