//! The host's end of a page ring: reads pages without trusting the guest.
//!
//! The consumer keeps its own position; the one in the region is written for the producer and the next consumer, and
//! read only when a consumer begins. The producer's position is checked at each load. A slot's words are used only
//! after its sequence number had the expected value, and copied bytes count only if the number is still the same
//! afterwards.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use sys::SharedMap;

use crate::layout::{Layout, Mode, header, pages, slot};
use crate::slots::{MAX_POSITION, Slots, complete};

/// Max slots to read per call, if slots are overwritten or damaged meanwhile.
const ATTEMPTS: u64 = 8;

/// A consumer's first page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begin {
    /// Where the last consumer ended. Pages overwritten since then count as missed.
    WhereLeft,
    /// The oldest page that still exists, read before or not: for a flight recorder.
    Oldest,
}

/// A page, and what happened since the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenPage {
    /// Its index among all pages of this CPU.
    pub position: u64,
    /// The agent's start in which it was filled.
    pub epoch: u64,
    /// Its length.
    pub len_bytes: usize,
    /// Number of pages directly before it that were overwritten before they were read. Exact, unless `damage_before` is
    /// not zero.
    pub missed_pages: u64,
    /// Faults since the previous page; an unknown number of pages is missing then.
    pub damage_before: u64,
}

/// The result of writing a page to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// There is no page.
    Nothing,
    /// The complete page is in the file.
    Page(TakenPage),
    /// The page was overwritten during the write: the last bytes of the file must be cut off.
    Overtaken {
        /// Number of these bytes.
        len_bytes: usize,
    },
}

/// A consumer's totals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub taken_pages: u64,
    /// Pages overwritten before they were read.
    pub missed_pages: u64,
    /// Number of states that no producer leaves.
    pub damage: u64,
}

/// Pages and bytes that the producer dropped, as the guest reports them, unchecked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProducerLosses {
    pub pages: u64,
    pub bytes: u64,
}

/// A page that seems to be present.
#[derive(Clone, Copy, Debug)]
struct PendingPage {
    epoch: u64,
    len_bytes: usize,
}

/// The only consumer of a CPU's pages.
#[derive(Debug)]
pub struct PageConsumer {
    map: Arc<SharedMap>,
    slots: Slots,
    mode: Mode,
    cpu: usize,
    generation: u64,
    /// Position of the next page.
    tail: u64,
    /// The producer's last seen position, which never decreases.
    seen_head: u64,
    missed_pages: u64,
    damage: u64,
    totals: Totals,
}

impl PageConsumer {
    pub(crate) fn new(
        map: Arc<SharedMap>,
        layout: &Layout,
        cpu: usize,
        generation: u64,
        begin: Begin,
    ) -> Self {
        let slots = Slots::new(layout, cpu);
        let mode = layout.plan.mode;
        let mut consumer = Self {
            map,
            slots,
            mode,
            cpu,
            generation,
            tail: 0,
            seen_head: 0,
            missed_pages: 0,
            damage: 0,
            totals: Totals::default(),
        };
        let head = consumer.map.load(slots.ring(pages::HEAD));
        match begin {
            Begin::WhereLeft => {
                consumer.tail = consumer.map.load(slots.ring(pages::TAIL));
                if consumer.tail > head || !consumer.is_plausible(head) {
                    consumer.resynchronise(head);
                    return consumer;
                }
            }
            Begin::Oldest => consumer.begin_at_oldest(head),
        }
        consumer.seen_head = head;
        consumer
    }

    /// The oldest slot may have been in use when the producer ended.
    fn begin_at_oldest(&mut self, head: u64) {
        self.tail = head.saturating_sub(self.slots.count());
        let sequence = self.map.load(self.slots.word(self.tail, slot::SEQUENCE));
        if self.tail < head && sequence != complete(self.tail) {
            self.tail += 1;
        }
    }

    /// Whether the memory still reaches the peer.
    ///
    /// # Errors
    /// When its file was truncated while it was mapped.
    pub fn check(&self) -> io::Result<()> {
        self.map.check()
    }

    /// The ring's CPU.
    #[must_use]
    pub fn cpu(&self) -> usize {
        self.cpu
    }

    /// Position of the next page.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.tail
    }

    /// The totals so far.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// The producer's own count of losses.
    #[must_use]
    pub fn producer_losses(&self) -> ProducerLosses {
        ProducerLosses {
            pages: self.map.load(self.slots.ring(pages::LOST_PAGES)),
            bytes: self.map.load(self.slots.ring(pages::LOST_BYTES)),
        }
    }

    /// Max size of a page.
    #[must_use]
    pub fn page_bytes(&self) -> usize {
        self.slots.page_bytes()
    }

    /// Copies the next page to the front of `into`, which has room for [`PageConsumer::page_bytes`] (a longer page is
    /// cut). `None` if there is no page; never waits.
    pub fn next_into(&mut self, into: &mut [u8]) -> Option<TakenPage> {
        for _ in 0..ATTEMPTS {
            let found = self.find()?;
            let len_bytes = found.len_bytes.min(into.len());
            if let Some(into) = into.get_mut(..len_bytes) {
                self.map.copy_out(self.slots.page(self.tail), into);
            }
            if let Some(taken_page) = self.take(found) {
                return Some(taken_page);
            }
        }
        None
    }

    /// Writes the next page from the shared memory directly to a file, at its current position.
    ///
    /// # Errors
    /// The error of write(2). The page is not consumed then, and part of it may be in the file.
    pub fn next_to(&mut self, file: BorrowedFd<'_>) -> io::Result<Written> {
        let Some(found) = self.find() else { return Ok(Written::Nothing) };
        self.map.write_to(file, self.slots.page(self.tail), found.len_bytes)?;
        let overtaken = Written::Overtaken { len_bytes: found.len_bytes };
        Ok(self.take(found).map_or(overtaken, Written::Page))
    }

    /// Finds the next page. Ends after a bounded number of slots, whatever is in the region.
    fn find(&mut self) -> Option<PendingPage> {
        for attempt in 0..ATTEMPTS {
            if self.is_replaced() {
                return None;
            }
            let head = self.map.load(self.slots.ring(pages::HEAD));
            if !self.is_plausible(head) {
                self.resynchronise(head);
                return None;
            }
            self.seen_head = head;
            self.skip_overwritten(head, attempt);
            if self.tail == head {
                return None;
            }
            let expected = complete(self.tail);
            let sequence = self.map.load(self.slots.word(self.tail, slot::SEQUENCE));
            if sequence == expected {
                if let Some(found) = self.look() {
                    return Some(found);
                }
            } else if sequence > expected && self.mode == Mode::Overwrite {
                self.miss(1);
            } else {
                self.resynchronise(head);
                return None;
            }
        }
        None
    }

    /// Whether the producer can have reached this position: not before the last seen one, and further than the ring's
    /// length only if pages are overwritten and the newest slot agrees.
    fn is_plausible(&self, head: u64) -> bool {
        if head < self.seen_head || head >= MAX_POSITION {
            return false;
        }
        let newest = head.wrapping_sub(1);
        head.wrapping_sub(self.tail) <= self.slots.count()
            || self.mode == Mode::Overwrite
                && self.map.load(self.slots.word(newest, slot::SEQUENCE)) >= complete(newest)
    }

    /// Skips pages that must have been overwritten, and more at each attempt, so that a fast producer does not win
    /// every time.
    fn skip_overwritten(&mut self, head: u64, attempt: u64) {
        let spare = self.slots.count() * attempt / ATTEMPTS;
        let oldest = head.saturating_sub(self.slots.count() - spare);
        if self.mode == Mode::Overwrite && self.tail < oldest {
            self.miss(oldest - self.tail);
        }
    }

    /// Reads the words of the next slot, whose sequence number is right. An impossible length makes the page a damaged
    /// one, which is skipped.
    fn look(&mut self) -> Option<PendingPage> {
        let word = |offset| self.map.load(self.slots.word(self.tail, offset));
        let (len_bytes, epoch) = (word(slot::LEN), word(slot::EPOCH));
        let len_bytes = usize::try_from(len_bytes).unwrap_or(usize::MAX);
        if (1..=self.slots.page_bytes()).contains(&len_bytes) {
            return Some(PendingPage { epoch, len_bytes });
        }
        if self.is_intact() {
            self.count_damage();
            self.advance();
        } else {
            self.miss(1);
        }
        None
    }

    /// Finishes reading a copied page; `None` if it was overwritten meanwhile.
    fn take(&mut self, found: PendingPage) -> Option<TakenPage> {
        if !self.is_intact() {
            self.miss(1);
            return None;
        }
        let taken_page = TakenPage {
            position: self.tail,
            epoch: found.epoch,
            len_bytes: found.len_bytes,
            missed_pages: std::mem::take(&mut self.missed_pages),
            damage_before: std::mem::take(&mut self.damage),
        };
        self.totals.taken_pages += 1;
        self.advance();
        Some(taken_page)
    }

    /// Whether everything loaded since the check of the sequence number belongs to it.
    fn is_intact(&self) -> bool {
        SharedMap::settle();
        let sequence = self.map.load(self.slots.word(self.tail, slot::SEQUENCE));
        sequence == complete(self.tail) && !self.is_replaced()
    }

    /// Whether an agent has laid the region out again: all positions are invalid then.
    fn is_replaced(&self) -> bool {
        self.map.load(header::GENERATION) != self.generation
    }

    fn advance(&mut self) {
        self.tail += 1;
        self.map.store(self.slots.ring(pages::TAIL), self.tail);
    }

    fn miss(&mut self, pages: u64) {
        self.missed_pages = self.missed_pages.saturating_add(pages);
        self.totals.missed_pages = self.totals.missed_pages.saturating_add(pages);
        self.tail = self.tail.saturating_add(pages);
        self.map.store(self.slots.ring(pages::MISSED), self.totals.missed_pages);
        self.map.store(self.slots.ring(pages::TAIL), self.tail);
    }

    fn count_damage(&mut self) {
        self.damage += 1;
        self.totals.damage += 1;
        self.map.store(self.slots.ring(pages::DAMAGE), self.totals.damage);
    }

    /// Continues at the producer's position, whatever it is: after an absurd position, the next valid one is a step
    /// back, and accepted in turn. No page is read twice.
    fn resynchronise(&mut self, head: u64) {
        self.count_damage();
        (self.tail, self.seen_head) = (head, head);
        self.map.store(self.slots.ring(pages::TAIL), head);
    }
}
