//! Rings of frames that a guest's kernel module keeps in the last quarter of the memory, which the
//! agent leaves alone: docs/formats/shared-streams.md.
//!
//! The guest only stores, and overwrites unread data. Nothing is written here, so any number of
//! hosts may look, also when the guest is dead.

use std::sync::Arc;

use sys::SharedMap;

use crate::parts::frames_at;
use crate::slots::{MAX_POSITION, complete, filling};

/// `HSCTRACE` as a little-endian word.
const MAGIC: u64 = u64::from_le_bytes(*b"HSCTRACE");
const VERSION: u64 = 1;
const HEADER_BYTES: usize = 4096;
const SLOT_WORDS: usize = 16;
const SLOT_BYTES: usize = 8 * SLOT_WORDS;
/// Words of a slot after its sequence number: what is filled, and the frame's.
const CONTENT_WORDS: usize = SLOT_WORDS - 1;
/// CPUs that a guest may have.
const MAX_CPUS: u64 = 8192;
/// Slots of a CPU.
const MAX_SLOTS: u64 = 1 << 28;

/// Offsets of words of the header.
mod header {
    pub(super) const MAGIC: usize = 0;
    pub(super) const VERSION: usize = 8;
    pub(super) const BYTES: usize = 16;
    pub(super) const CPUS: usize = 24;
    pub(super) const SLOTS: usize = 32;
}

/// Memory without rings of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoFrames {
    /// No module has begun there.
    #[error("the module hyperscope_guest has not started with channel=shm in this memory yet")]
    NotReady,
    /// Of a version that this program doesn't know.
    #[error("the module's rings have version {0}, but this program reads version {VERSION}")]
    Version(u64),
    /// What the header says can't be.
    #[error("the module's rings are invalid: {cpus} CPUs with {slots} slots in {bytes} bytes")]
    Sizes {
        /// What it says of CPUs.
        cpus: u64,
        /// Of slots of each.
        slots: u64,
        /// And of bytes.
        bytes: u64,
    },
}

/// Where to begin to take frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakeFrom {
    Oldest,
    /// This many before the next one, or at the oldest.
    Last(u64),
}

/// A frame as it stood in its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// How many frames of its CPU came before it.
    pub position: u64,
    /// Whether its writer has ended it.
    pub is_whole: bool,
    /// What is filled of the words, in the writer's terms.
    pub filled: u64,
    pub words: [u64; CONTENT_WORDS - 1],
}

/// The ring of one CPU.
#[derive(Debug)]
pub struct FrameRing {
    map: Arc<SharedMap>,
    at: usize,
    slots: u64,
    next: u64,
    /// What the guest said last of how far it is.
    seen_head: u64,
    /// The frame that is not ended was taken: this was all.
    is_over: bool,
    missed: u64,
    damage: u64,
}

/// Attaches to the rings in a memory: one for each CPU, in their order.
///
/// # Errors
/// When there are none, or what is said of them can't be.
pub fn frame_rings(map: &Arc<SharedMap>, from: TakeFrom) -> Result<Vec<FrameRing>, NoFrames> {
    let begin = frames_at(map.len_bytes());
    let room = map.len_bytes() - begin;
    if room < HEADER_BYTES || !begin.is_multiple_of(8) || map.load(begin + header::MAGIC) != MAGIC {
        return Err(NoFrames::NotReady);
    }
    // Each word is loaded once.
    let [version, bytes, cpus, slots] =
        [header::VERSION, header::BYTES, header::CPUS, header::SLOTS]
            .map(|at| map.load(begin + at));
    if version != VERSION {
        return Err(NoFrames::Version(version));
    }
    let wrong = NoFrames::Sizes { cpus, slots, bytes };
    let are_counts = (1..=MAX_CPUS).contains(&cpus) && (2..=MAX_SLOTS).contains(&slots);
    if !are_counts || !slots.is_power_of_two() {
        return Err(wrong);
    }
    // At most 2^13 * 2^28 * 2^7.
    let ring_bytes = (slots as usize + 1) * SLOT_BYTES;
    if bytes > room as u64 || HEADER_BYTES + cpus as usize * ring_bytes > room {
        return Err(wrong);
    }
    let ring = |cpu: usize| {
        FrameRing::new(Arc::clone(map), begin + HEADER_BYTES + cpu * ring_bytes, slots, from)
    };
    Ok((0..cpus as usize).map(ring).collect())
}

impl FrameRing {
    fn new(map: Arc<SharedMap>, at: usize, slots: u64, from: TakeFrom) -> Self {
        let head = map.load(at).min(MAX_POSITION);
        let back = match from {
            // The slot that is filled next, perhaps already, held the one before these.
            TakeFrom::Oldest => slots - 1,
            TakeFrom::Last(frames) => frames.min(slots - 1),
        };
        let next = head.saturating_sub(back);
        Self { map, at, slots, next, seen_head: head, is_over: false, missed: 0, damage: 0 }
    }

    /// Takes the next frame that its writer has ended, or that a writer before left open. None where
    /// there is none now; never waits.
    pub fn take(&mut self) -> Option<Frame> {
        if self.is_over {
            return None;
        }
        let head = self.map.load(self.at);
        if head < self.seen_head || head >= MAX_POSITION {
            // No position that a writer can have after the last one.
            self.damage += 1;
            (self.next, self.seen_head) = (head.min(MAX_POSITION), head.min(MAX_POSITION));
            return None;
        }
        self.seen_head = head;
        // Bounded, whatever is in the memory: each iteration advances by a frame.
        for _ in 0..=self.slots {
            let oldest = head.saturating_sub(self.slots);
            if self.next < oldest {
                self.miss(oldest - self.next);
            }
            if self.next >= head {
                return None;
            }
            let found = self.look();
            self.next += 1;
            match found {
                SlotRead::Frame(frame) => return Some(frame),
                SlotRead::Overwritten => self.missed += 1,
                SlotRead::Nonsense => self.damage += 1,
            }
        }
        None
    }

    /// Ends the taking with what there is of the frame that its writer is at, once all others are
    /// taken.
    pub fn take_open(&mut self) -> Option<Frame> {
        if self.is_over || self.next != self.seen_head {
            return None;
        }
        self.is_over = true;
        match self.look() {
            SlotRead::Frame(frame) if frame.filled > 0 => Some(frame),
            _ => None,
        }
    }

    /// Frames that were overwritten before they were taken.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// How often what stood there made no sense.
    #[must_use]
    pub fn damage(&self) -> u64 {
        self.damage
    }

    fn miss(&mut self, frames: u64) {
        self.missed = self.missed.saturating_add(frames);
        self.next += frames;
    }

    /// Copies the slot of the next frame, if it holds that.
    fn look(&self) -> SlotRead {
        // The remainder is less than the slots, which fit the memory.
        let slot = self.at + (1 + (self.next % self.slots) as usize) * SLOT_BYTES;
        let (open, closed) = (filling(self.next), complete(self.next));
        let sequence = self.map.load(slot);
        if sequence > closed {
            return SlotRead::Overwritten;
        }
        if sequence < open {
            return SlotRead::Nonsense;
        }
        let mut bytes = [0; 8 * (CONTENT_WORDS - 1)];
        // An open frame's words are stored before the one that announces them.
        let filled = self.map.load(slot + 8);
        self.map.copy_out(slot + 16, &mut bytes);
        SharedMap::settle();
        if self.map.load(slot) != sequence {
            return SlotRead::Overwritten;
        }
        let (words, _) = bytes.as_chunks::<8>();
        let words =
            std::array::from_fn(|at| words.get(at).map_or(0, |bytes| u64::from_le_bytes(*bytes)));
        SlotRead::Frame(Frame { position: self.next, is_whole: sequence == closed, filled, words })
    }
}

/// What a slot holds.
enum SlotRead {
    Frame(Frame),
    /// A later frame.
    Overwritten,
    /// What no writer leaves there.
    Nonsense,
}
