//! The layout of the area, computed from the memory's size and the number of vCPUs.

use sys::SharedMap;

use crate::parts::spans_part;

/// `HSCSPANS` as a little-endian word.
pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"HSCSPANS");
/// Changes with the meaning of any byte.
pub(super) const VERSION: u64 = 1;

/// Max vCPUs of an area.
pub const MAX_VCPUS: usize = 4096;
/// Min slots per vCPU: fewer would be overwritten between two reads.
const FEWEST_SLOTS: usize = 128;

/// Offsets of words in the area.
pub(super) mod head {
    pub(in super::super) const MAGIC: usize = 0;
    pub(in super::super) const VERSION: usize = 8;
    pub(in super::super) const AREA_BYTES: usize = 16;
    pub(in super::super) const VCPUS: usize = 24;
    pub(in super::super) const TICKS_PER_SECOND: usize = 32;
    pub(in super::super) const INTERVAL_NS: usize = 40;
    pub(in super::super) const EPOCH: usize = 128;
    pub(in super::super) const STATE: usize = 136;
    pub(in super::super) const BEATS: usize = 144;
    pub(in super::super) const NAMES: usize = 192;
}

/// Names of exit reasons: a count, and for each a word with the code and `isa`, and its text.
pub(super) mod names {
    pub(in super::super) const AT: usize = 4096;
    pub(in super::super) const MOST: usize = 256;
    pub(in super::super) const BYTES: usize = 48;
    pub(in super::super) const TEXT: usize = 8;
    pub(in super::super) const TEXT_BYTES: usize = BYTES - TEXT;
}

/// Offset of the first ring.
const RINGS_AT: usize = names::AT + names::MOST * names::BYTES;

/// Offsets of words in the head of a vCPU's ring.
pub(super) mod ring {
    pub(in super::super) const POSITION: usize = 0;
    pub(in super::super) const KNOWN_TO: usize = 8;
    pub(in super::super) const KNOWN_FROM: usize = 16;
    pub(in super::super) const VCPU: usize = 24;
    pub(in super::super) const LOST_EVENTS: usize = 32;
    pub(in super::super) const SLOTS: usize = 128;
}

/// Offsets of words in a slot.
pub(super) mod slot {
    pub(in super::super) const SEQUENCE: usize = 0;
    pub(in super::super) const START: usize = 8;
    pub(in super::super) const TICKS: usize = 16;
    pub(in super::super) const WHAT: usize = 24;
    pub(in super::super) const BYTES: usize = 32;
}

/// Why there are no spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpansError {
    /// The memory is too small for an area, or for rings of this many vCPUs.
    #[error("{memory_bytes} bytes of shared memory are too few for {vcpus} vCPUs")]
    TooSmall {
        /// Size of the memory.
        memory_bytes: usize,
        /// Requested number of vCPUs.
        vcpus: usize,
    },
    /// An agent's region uses the memory up to its end.
    #[error("an older agent in the guest uses all of the memory; start one of this version")]
    InUse,
    /// No host has laid the area out.
    #[error(
        "the host publishes nothing about the vCPUs of this machine: run hyperscope publish there"
    )]
    NotThere,
    /// The area has another version of this format.
    #[error("the host publishes in version {0} of the format, which this program does not know")]
    Version(u64),
    /// No host writes these sizes.
    #[error("the shared memory contains impossible sizes")]
    Sizes,
}

/// All offsets. None is read from the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Area {
    pub(super) at: usize,
    pub(super) bytes: usize,
    pub(super) vcpus: usize,
    ring_bytes: usize,
    slots: usize,
}

impl Area {
    pub(super) fn for_memory(memory_bytes: usize, vcpus: usize) -> Result<Self, SpansError> {
        let too_small = SpansError::TooSmall { memory_bytes, vcpus };
        let (at, bytes) = spans_part(memory_bytes).ok_or(too_small)?;
        if !(1..=MAX_VCPUS).contains(&vcpus) {
            return Err(too_small);
        }
        let ring_bytes = ((bytes - RINGS_AT) / vcpus) & !63;
        let slots = ring_bytes.saturating_sub(ring::SLOTS) / slot::BYTES;
        if slots < FEWEST_SLOTS {
            return Err(too_small);
        }
        Ok(Self { at, bytes, vcpus, ring_bytes, slots })
    }

    /// The memory's area, if its sizes match the size of the memory.
    pub(super) fn load(map: &SharedMap) -> Result<Self, SpansError> {
        let (at, bytes) = spans_part(map.len_bytes()).ok_or(SpansError::NotThere)?;
        let word = |offset: usize| map.load(at + offset);
        if word(head::MAGIC) != MAGIC {
            return Err(SpansError::NotThere);
        }
        let version = word(head::VERSION);
        if version != VERSION {
            return Err(SpansError::Version(version));
        }
        let vcpus = usize::try_from(word(head::VCPUS)).map_err(|_| SpansError::Sizes)?;
        let area = Self::for_memory(map.len_bytes(), vcpus).map_err(|_| SpansError::Sizes)?;
        if word(head::AREA_BYTES) != bytes as u64 {
            return Err(SpansError::Sizes);
        }
        Ok(area)
    }

    /// Offset of a word of the area's head.
    pub(super) fn head(&self, offset: usize) -> usize {
        self.at + offset
    }

    /// Offset of a name.
    pub(super) fn name(&self, index: usize) -> usize {
        self.at + names::AT + index % names::MOST * names::BYTES
    }

    /// Offset of a word in the head of a vCPU's ring.
    pub(super) fn ring(&self, vcpu: usize, offset: usize) -> usize {
        self.at + RINGS_AT + vcpu * self.ring_bytes + offset
    }

    /// Offset of a word in the slot for a position.
    pub(super) fn slot(&self, vcpu: usize, position: u64, offset: usize) -> usize {
        // The remainder is less than the count, which is a usize.
        let index = (position % self.slots()) as usize;
        self.ring(vcpu, ring::SLOTS) + index * slot::BYTES + offset
    }

    /// Slots of each ring.
    pub(super) fn slots(&self) -> u64 {
        self.slots as u64
    }
}
