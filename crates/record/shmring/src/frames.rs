//! Rings of frames that a guest's kernel module writes to the last quarter of the memory, which the agent does not use:
//! docs/formats/shared-streams.md.
//!
//! The guest only stores, and overwrites unread data. The reader writes nothing, so any number of hosts may read, even
//! after the guest has died.

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
/// Words of a slot after its sequence number: the fill level and the frame.
const CONTENT_WORDS: usize = SLOT_WORDS - 1;
/// Max CPUs of a guest.
const MAX_CPUS: u64 = 8192;
/// Max slots of a CPU.
const MAX_SLOTS: u64 = 1 << 28;

/// Offsets of words of the header.
mod header {
    pub(super) const MAGIC: usize = 0;
    pub(super) const VERSION: usize = 8;
    pub(super) const BYTES: usize = 16;
    pub(super) const CPUS: usize = 24;
    pub(super) const SLOTS: usize = 32;
}

/// Why there are no rings of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoFrames {
    /// No module has initialised the memory.
    #[error("the module hyperscope_guest has not started with channel=shm in this memory yet")]
    NotReady,
    /// The version is unknown.
    #[error("the module's rings have version {0}, but this program reads version {VERSION}")]
    Version(u64),
    /// The header has invalid sizes.
    #[error("the module's rings are invalid: {cpus} CPUs with {slots} slots in {bytes} bytes")]
    Sizes {
        /// Number of CPUs in the header.
        cpus: u64,
        /// Slots per CPU in the header.
        slots: u64,
        /// Size in the header.
        bytes: u64,
    },
}

/// The first frame to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakeFrom {
    Oldest,
    /// This many before the next one, or the oldest.
    Last(u64),
}

/// A frame as it was in its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Number of earlier frames of its CPU.
    pub position: u64,
    /// Whether its writer has finished it.
    pub is_whole: bool,
    /// The filled part of the words, in the writer's unit.
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
    /// The guest's last position.
    seen_head: u64,
    /// The unfinished frame was read: nothing follows.
    is_over: bool,
    missed: u64,
    damage: u64,
}

/// Attaches to the rings in a memory, one per CPU, in order.
///
/// # Errors
/// When there are none, or their header is invalid.
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
            // The next slot to be filled may be in use already, so the oldest frame in it is lost.
            TakeFrom::Oldest => slots - 1,
            TakeFrom::Last(frames) => frames.min(slots - 1),
        };
        let next = head.saturating_sub(back);
        Self { map, at, slots, next, seen_head: head, is_over: false, missed: 0, damage: 0 }
    }

    /// Reads the next frame that its writer has finished, or that an earlier writer left unfinished. `None` if there is
    /// none now; never waits.
    pub fn take(&mut self) -> Option<Frame> {
        if self.is_over {
            return None;
        }
        let head = self.map.load(self.at);
        if head < self.seen_head || head >= MAX_POSITION {
            // No writer can have a position beyond the last one.
            self.damage += 1;
            (self.next, self.seen_head) = (head.min(MAX_POSITION), head.min(MAX_POSITION));
            return None;
        }
        self.seen_head = head;
        // Bounded for any memory content: each iteration advances by a frame.
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

    /// Reads the filled part of the unfinished frame, after all others were read, and ends reading.
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

    /// Number of frames that were overwritten before they were read.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// Number of invalid slots.
    #[must_use]
    pub fn damage(&self) -> u64 {
        self.damage
    }

    fn miss(&mut self, frames: u64) {
        self.missed = self.missed.saturating_add(frames);
        self.next += frames;
    }

    /// Copies the slot of the next frame, if the frame is in it.
    fn look(&self) -> SlotRead {
        // The remainder is less than the number of slots, which fit the memory.
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
        // The writer stores the words of an open frame before it updates the fill level.
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

/// The state of a slot.
enum SlotRead {
    Frame(Frame),
    /// It has a later frame.
    Overwritten,
    /// No writer leaves this state.
    Nonsense,
}
