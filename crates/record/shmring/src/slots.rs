//! The slots of a page ring: their places, and the meaning of their sequence numbers.
//!
//! Positions count the pages of a CPU from 0 and never restart, not even with the agent. The page at position `p` is in
//! slot `p % slots`.

use crate::layout::{Layout, pages, slot, slot_pages_at};

/// Limit of positions, so that sequence numbers fit in a word. At a page per nanosecond they last over a hundred years.
pub(crate) const MAX_POSITION: u64 = 1 << 62;

/// Sequence number of a slot while the page at a position is being written.
pub(crate) fn filling(position: u64) -> u64 {
    position.wrapping_mul(2).wrapping_add(1)
}

/// Sequence number of a slot with the complete page at a position. Larger than its [`filling`], less than that of any
/// later page.
pub(crate) fn complete(position: u64) -> u64 {
    position.wrapping_mul(2).wrapping_add(2)
}

/// The places of a ring's slots. Private to each side, so no offset depends on shared memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slots {
    ring_at: usize,
    pages_at: usize,
    count: usize,
    page_bytes: usize,
}

impl Slots {
    pub(crate) fn new(layout: &Layout, cpu: usize) -> Self {
        let ring_at = layout.page_ring_at(cpu);
        let count = layout.plan.slots_per_cpu;
        let pages_at = ring_at + slot_pages_at(count);
        Self { ring_at, pages_at, count, page_bytes: layout.plan.page_bytes }
    }

    pub(crate) fn count(&self) -> u64 {
        self.count as u64
    }

    pub(crate) fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// Offset of a word of the ring's head.
    pub(crate) fn ring(&self, offset: usize) -> usize {
        self.ring_at + offset
    }

    /// Offset of a word in the head of the slot for a position.
    pub(crate) fn word(&self, position: u64, offset: usize) -> usize {
        self.ring_at + pages::SLOTS + self.index(position) * slot::BYTES + offset
    }

    /// Offset of the page in the slot for a position.
    pub(crate) fn page(&self, position: u64) -> usize {
        self.pages_at + self.index(position) * self.page_bytes
    }

    fn index(&self, position: u64) -> usize {
        // The remainder is less than the count, which is a usize.
        (position % self.count()) as usize
    }
}
