//! The guest's end of a page ring: fills slots, one after the other.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use sys::SharedMap;

use crate::layout::{Layout, Mode, pages, slot};
use crate::slots::{MAX_POSITION, Slots, complete, filling};

/// What came of filling a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filled {
    /// A page of that many bytes can be taken now.
    Page {
        /// Its place in the order of all pages of this CPU.
        position: u64,
        /// Its length.
        len_bytes: usize,
    },
    /// There was nothing to put in; the slot is still the next one.
    Nothing,
    /// The ring keeps what was not taken yet, and has no room; the caller's closure was not called.
    Full,
}

/// The one producer of a CPU's pages.
#[derive(Debug)]
pub struct PageProducer {
    map: Arc<SharedMap>,
    slots: Slots,
    mode: Mode,
    cpu: u64,
    epoch: u64,
    /// Position of the next page.
    head: u64,
    /// The consumer's position as last loaded: the real one is this or later.
    tail: u64,
    lost_pages: u64,
    lost_bytes: u64,
}

impl PageProducer {
    /// Goes on where the ring's last producer stopped, which is the start for a new ring.
    pub(crate) fn new(map: Arc<SharedMap>, layout: &Layout, cpu: usize, epoch: u64) -> Self {
        let slots = Slots::new(layout, cpu);
        let mut head = map.load(slots.ring(pages::HEAD));
        if map.load(slots.word(head, slot::SEQUENCE)) == complete(head) {
            // The last producer ended between finishing a page and saying so.
            head += 1;
            map.store(slots.ring(pages::HEAD), head);
        }
        let mut tail = map.load(slots.ring(pages::TAIL));
        if layout.plan.mode == Mode::Keep && head.wrapping_sub(tail) > slots.count() {
            // Not a position that a consumer can have: no page would ever be free.
            tail = head;
            map.store(slots.ring(pages::TAIL), tail);
        }
        let lost_pages = map.load(slots.ring(pages::LOST_PAGES));
        let lost_bytes = map.load(slots.ring(pages::LOST_BYTES));
        let mode = layout.plan.mode;
        Self { map, slots, mode, cpu: cpu as u64, epoch, head, tail, lost_pages, lost_bytes }
    }

    /// Whether the positions that a former producer left can be gone on from.
    pub(crate) fn can_go_on(map: &SharedMap, layout: &Layout, cpu: usize) -> bool {
        map.load(Slots::new(layout, cpu).ring(pages::HEAD)) < MAX_POSITION
    }

    /// The CPU whose ring this is.
    #[must_use]
    pub fn cpu(&self) -> usize {
        usize::try_from(self.cpu).unwrap_or(usize::MAX)
    }

    /// Position of the next page: how many were filled since the region was laid out.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.head
    }

    /// Whether there is no room, as it stands now. A ring that overwrites is never full.
    pub fn is_full(&mut self) -> bool {
        if self.mode == Mode::Overwrite {
            return false;
        }
        // The consumer's position is only loaded when the last known one leaves no room: its cache
        // line moves between CPUs once a round of the ring.
        if self.head.wrapping_sub(self.tail) >= self.slots.count() {
            self.tail = self.map.load(self.slots.ring(pages::TAIL));
        }
        self.head.wrapping_sub(self.tail) >= self.slots.count()
    }

    /// Lets `fill` put bytes into the next slot; it returns how many, zero for none. Never blocks by
    /// itself, and needs no system call.
    ///
    /// From the moment `fill` is called the page that was in the slot is gone: a ring that overwrites
    /// holds its last `slots - 1` pages for sure.
    ///
    /// # Errors
    /// What `fill` returned; the slot is still the next one.
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

    /// Fills the next slot with what one read(2) of `source` gives: a page of `trace_pipe_raw` goes
    /// from the kernel's buffer to the shared memory in one copy.
    ///
    /// # Errors
    /// What read(2) says; `WouldBlock` where there is no page yet.
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
    /// Bytes it has room for.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    /// Has the kernel read into the slot, from its start; how many bytes.
    ///
    /// # Errors
    /// What read(2) says.
    pub fn read_from(&self, source: BorrowedFd<'_>) -> io::Result<usize> {
        self.map.read_from(source, self.at, self.len_bytes)
    }

    /// Copies bytes into the slot, from its start, as far as it has room; how many.
    pub fn copy_from(&self, bytes: &[u8]) -> usize {
        let len_bytes = bytes.len().min(self.len_bytes);
        self.map.copy_in(self.at, bytes.get(..len_bytes).unwrap_or_default());
        len_bytes
    }
}
