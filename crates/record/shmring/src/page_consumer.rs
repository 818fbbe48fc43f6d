//! The host's end of a page ring: takes pages out, and believes nothing.
//!
//! The consumer's position is its own; the one in the region is written for the producer and for the
//! next consumer, and read only when a consumer begins. The producer's position is checked each time
//! it is read. No slot's words are used before its sequence number was the expected one, and what was
//! copied counts only if the number is still the same afterwards.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use sys::SharedMap;

use crate::layout::{Layout, Mode, header, pages, slot};
use crate::slots::{MAX_POSITION, Slots, complete};

/// Slots looked at in one call, when one after the other is overwritten or damaged meanwhile.
const ATTEMPTS: u64 = 8;

/// Where a consumer begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begin {
    /// Where the last consumer stood. What was overwritten since is counted as missed.
    WhereLeft,
    /// At the oldest page that is still there, taken before or not: to read a flight recorder.
    Oldest,
}

/// A page that was taken, and what happened since the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenPage {
    /// Its place in the order of all pages of this CPU.
    pub position: u64,
    /// The agent's start in which it was filled.
    pub epoch: u64,
    /// Its length.
    pub len_bytes: usize,
    /// Pages directly before it that were overwritten before they were taken. Exact, unless
    /// `damage_before` is not zero.
    pub missed_pages: u64,
    /// Faults found since the page before; an unknown number of pages is missing then.
    pub damage_before: u64,
}

/// What came of writing a page to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// There is no page.
    Nothing,
    /// The page is in the file, whole.
    Page(TakenPage),
    /// The page was overwritten while it was written: the last bytes of the file are to be cut off.
    Overtaken {
        /// How many.
        len_bytes: usize,
    },
}

/// Sums over all a consumer did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub taken_pages: u64,
    /// Pages overwritten before they were taken.
    pub missed_pages: u64,
    /// Times the ring held what no producer writes.
    pub damage: u64,
}

/// Pages and bytes that the producer says it could not put into the ring. From the guest, unchecked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProducerLosses {
    pub pages: u64,
    pub bytes: u64,
}

/// A page that is there, as far as the first look says.
#[derive(Clone, Copy, Debug)]
struct PendingPage {
    epoch: u64,
    len_bytes: usize,
}

/// The one consumer of a CPU's pages.
#[derive(Debug)]
pub struct PageConsumer {
    map: Arc<SharedMap>,
    slots: Slots,
    mode: Mode,
    cpu: usize,
    generation: u64,
    /// Position of the next page to take.
    tail: u64,
    /// The producer's position as last seen: it only grows.
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

    /// The oldest slot may be one that was being filled when the producer ended.
    fn begin_at_oldest(&mut self, head: u64) {
        self.tail = head.saturating_sub(self.slots.count());
        let sequence = self.map.load(self.slots.word(self.tail, slot::SEQUENCE));
        if self.tail < head && sequence != complete(self.tail) {
            self.tail += 1;
        }
    }

    /// Whether the memory still reaches the other side.
    ///
    /// # Errors
    /// When its file was cut while it was mapped.
    pub fn check(&self) -> io::Result<()> {
        self.map.check()
    }

    /// The CPU whose ring this is.
    #[must_use]
    pub fn cpu(&self) -> usize {
        self.cpu
    }

    /// Position of the next page to take.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.tail
    }

    /// Sums over all that was done.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// What the producer says it lost.
    #[must_use]
    pub fn producer_losses(&self) -> ProducerLosses {
        ProducerLosses {
            pages: self.map.load(self.slots.ring(pages::LOST_PAGES)),
            bytes: self.map.load(self.slots.ring(pages::LOST_BYTES)),
        }
    }

    /// Bytes of the largest page.
    #[must_use]
    pub fn page_bytes(&self) -> usize {
        self.slots.page_bytes()
    }

    /// Copies the next page to the front of `into`, which has room for [`PageConsumer::page_bytes`]
    /// (a longer page is cut). None where there is no page; never waits.
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

    /// Writes the next page from the shared memory straight to a file, at its current place.
    ///
    /// # Errors
    /// What write(2) says. The page is not taken then, and part of it may be in the file.
    pub fn next_to(&mut self, file: BorrowedFd<'_>) -> io::Result<Written> {
        let Some(found) = self.find() else { return Ok(Written::Nothing) };
        self.map.write_to(file, self.slots.page(self.tail), found.len_bytes)?;
        let overtaken = Written::Overtaken { len_bytes: found.len_bytes };
        Ok(self.take(found).map_or(overtaken, Written::Page))
    }

    /// Looks for the next page. Ends after a bounded number of slots, whatever is in the region.
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

    /// A producer's position is one that it can have reached: not before what was seen, and further
    /// than the ring is long only where pages are overwritten and the newest slot agrees.
    fn is_plausible(&self, head: u64) -> bool {
        if head < self.seen_head || head >= MAX_POSITION {
            return false;
        }
        let newest = head.wrapping_sub(1);
        head.wrapping_sub(self.tail) <= self.slots.count()
            || self.mode == Mode::Overwrite
                && self.map.load(self.slots.word(newest, slot::SEQUENCE)) >= complete(newest)
    }

    /// Leaves out what must have been overwritten, and some more at each attempt, so that a fast
    /// producer does not win every time.
    fn skip_overwritten(&mut self, head: u64, attempt: u64) {
        let spare = self.slots.count() * attempt / ATTEMPTS;
        let oldest = head.saturating_sub(self.slots.count() - spare);
        if self.mode == Mode::Overwrite && self.tail < oldest {
            self.miss(oldest - self.tail);
        }
    }

    /// The words of the next slot, which has the right sequence number. A length that no producer
    /// writes makes the page a damaged one, which is left out.
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

    /// Ends the taking of a page that was found and copied; none if it was overwritten meanwhile.
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

    /// Whether all that was loaded since the sequence number was the right one belongs to it.
    fn is_intact(&self) -> bool {
        SharedMap::settle();
        let sequence = self.map.load(self.slots.word(self.tail, slot::SEQUENCE));
        sequence == complete(self.tail) && !self.is_replaced()
    }

    /// Whether an agent has laid the region out again: then nothing here is where it was.
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

    /// Begins again at the producer's position, whatever that is: after an absurd one, the next sane
    /// one is a step back, and begun at in turn. No page is taken twice.
    fn resynchronise(&mut self, head: u64) {
        self.count_damage();
        (self.tail, self.seen_head) = (head, head);
        self.map.store(self.slots.ring(pages::TAIL), head);
    }
}
