//! The guest's end of a page ring: fills one slot after another.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use sys::SharedMap;

use crate::layout::{Layout, Mode, pages, slot};
use crate::slots::{MAX_POSITION, Slots, complete, filling};

/// The result of filling a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filled {
    /// A page of this size is ready for the consumer.
    Page {
        /// Its index among all pages of this CPU.
        position: u64,
        len_bytes: usize,
    },
    /// There was nothing to add; the slot stays the next one.
    Nothing,
    /// The ring keeps unread pages, and is full; the caller's closure was not called.
    Full,
}

/// The only producer of a CPU's pages.
#[derive(Debug)]
pub struct PageProducer {
    map: Arc<SharedMap>,
    slots: Slots,
    mode: Mode,
    cpu: u64,
    epoch: u64,
    /// Position of the next page.
    head: u64,
    /// The consumer's last loaded position: the real one is this or later.
    tail: u64,
    lost_pages: u64,
    lost_bytes: u64,
}

impl PageProducer {
    /// Continues where the ring's last producer stopped; a new ring starts at 0.
    pub(crate) fn new(map: Arc<SharedMap>, layout: &Layout, cpu: usize, epoch: u64) -> Self {
        let slots = Slots::new(layout, cpu);
        let mut head = map.load(slots.ring(pages::HEAD));
        if map.load(slots.word(head, slot::SEQUENCE)) == complete(head) {
            // The last producer ended between finishing a page and advancing its position.
            head += 1;
            map.store(slots.ring(pages::HEAD), head);
        }
        let mut tail = map.load(slots.ring(pages::TAIL));
        if layout.plan.mode == Mode::Keep && head.wrapping_sub(tail) > slots.count() {
            // A consumer can't have this position, with which no page would ever be free.
            tail = head;
            map.store(slots.ring(pages::TAIL), tail);
        }
        let lost_pages = map.load(slots.ring(pages::LOST_PAGES));
        let lost_bytes = map.load(slots.ring(pages::LOST_BYTES));
        let mode = layout.plan.mode;
        Self { map, slots, mode, cpu: cpu as u64, epoch, head, tail, lost_pages, lost_bytes }
    }

    /// Whether an earlier producer's positions are valid.
    pub(crate) fn can_go_on(map: &SharedMap, layout: &Layout, cpu: usize) -> bool {
        map.load(Slots::new(layout, cpu).ring(pages::HEAD)) < MAX_POSITION
    }

    /// The ring's CPU.
    #[must_use]
    pub fn cpu(&self) -> usize {
        usize::try_from(self.cpu).unwrap_or(usize::MAX)
    }

    /// Position of the next page: the number of pages filled since the region was laid out.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.head
    }

    /// Whether the ring is full now. A ring that overwrites is never full.
    pub fn is_full(&mut self) -> bool {
        if self.mode == Mode::Overwrite {
            return false;
        }
        // Loads the consumer's position only if the last known one leaves no room: its cache line moves between CPUs
        // once per round of the ring.
        if self.head.wrapping_sub(self.tail) >= self.slots.count() {
            self.tail = self.map.load(self.slots.ring(pages::TAIL));
        }
        self.head.wrapping_sub(self.tail) >= self.slots.count()
    }

    /// Lets `fill` write bytes to the next slot and return their number, zero for none. Never blocks by itself, and
    /// needs no system call.
    ///
    /// The page in the slot is lost as soon as `fill` is called: a ring that overwrites always has its last `slots - 1`
    /// pages.
    ///
    /// # Errors
    /// The error of `fill`; the slot stays the next one.
    pub fn fill(
        &mut self,
        fill: impl FnOnce(&Slot<'_>) -> io::Result<usize>,
    ) -> io::Result<Filled> {
        if self.is_full() {
            return Ok(Filled::Full);
        }
        let position = self.head;
        let word = |offset| self.slots.word(position, offset);
        self.map.store(word(slot::SEQUENCE), filling(position));
        SharedMap::publish();
        let page = Slot {
            map: &self.map,
            at: self.slots.page(position),
            len_bytes: self.slots.page_bytes(),
        };
        let len_bytes = fill(&page)?.min(page.len_bytes);
        if len_bytes == 0 {
            return Ok(Filled::Nothing);
        }
        self.map.store(word(slot::CPU), self.cpu);
        self.map.store(word(slot::LEN), len_bytes as u64);
        self.map.store(word(slot::EPOCH), self.epoch);
        SharedMap::publish();
        self.map.store(word(slot::SEQUENCE), complete(position));
        SharedMap::publish();
        self.head = position + 1;
        self.map.store(self.slots.ring(pages::HEAD), self.head);
        Ok(Filled::Page { position, len_bytes })
    }

    /// Fills the next slot with one read(2) of `source`: a page of `trace_pipe_raw` goes from the kernel's buffer to
    /// the shared memory in one copy.
    ///
    /// # Errors
    /// The error of read(2); `WouldBlock` if there is no page yet.
    pub fn read_from(&mut self, source: BorrowedFd<'_>) -> io::Result<Filled> {
        self.fill(|slot| slot.read_from(source))
    }

    /// Reports to the host pages that were dropped for lack of room, or lost otherwise.
    pub fn lose(&mut self, pages: u64, bytes: u64) {
        self.lost_pages = self.lost_pages.wrapping_add(pages);
        self.lost_bytes = self.lost_bytes.wrapping_add(bytes);
        self.map.store(self.slots.ring(pages::LOST_PAGES), self.lost_pages);
        self.map.store(self.slots.ring(pages::LOST_BYTES), self.lost_bytes);
    }
}

/// A slot that is being filled.
#[derive(Debug)]
pub struct Slot<'a> {
    map: &'a SharedMap,
    at: usize,
    len_bytes: usize,
}

impl Slot<'_> {
    /// Size of the slot.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    /// Reads from a file to the slot's start; returns the number of bytes.
    ///
    /// # Errors
    /// The error of read(2).
    pub fn read_from(&self, source: BorrowedFd<'_>) -> io::Result<usize> {
        self.map.read_from(source, self.at, self.len_bytes)
    }

    /// Copies bytes to the slot's start, as many as fit; returns their number.
    pub fn copy_from(&self, bytes: &[u8]) -> usize {
        let len_bytes = bytes.len().min(self.len_bytes);
        self.map.copy_in(self.at, bytes.get(..len_bytes).unwrap_or_default());
        len_bytes
    }
}
