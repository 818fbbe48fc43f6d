//! The layout of a region: computed from a plan by the agent, checked word by word by the host.
//!
//! docs/formats/shared-memory.md specifies it byte by byte.

use sys::SharedMap;

/// `HSCSHMEM` as a little-endian word.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"HSCSHMEM");
/// Changes with the meaning of any byte.
pub(crate) const VERSION: u64 = 1;

/// Alignment of heads and slots, so that mappings cover whole pages.
pub(crate) const ALIGN: usize = 4096;

/// Max CPUs of a region.
pub const MAX_CPUS: usize = 4096;
/// Max slots of a CPU.
pub const MAX_SLOTS: usize = 1 << 24;
/// Valid page sizes; only powers of two.
pub const PAGE_BYTES: std::ops::RangeInclusive<usize> = 4096..=65536;
/// Valid sizes of a control stream's ring; only powers of two.
pub const CONTROL_BYTES: std::ops::RangeInclusive<usize> = 4096..=1 << 20;

/// Offsets of words of the header page.
pub(crate) mod header {
    pub(crate) const MAGIC: usize = 0;
    pub(crate) const LAYOUT: usize = 8;
    pub(crate) const GENERATION: usize = 128;
    pub(crate) const EPOCH: usize = 136;
    pub(crate) const BOOT_ID: usize = 144;
    pub(crate) const STATE: usize = 160;
    pub(crate) const HEARTBEATS: usize = 192;
    pub(crate) const WAKE_UPS: usize = 200;
    pub(crate) const AGENT_NS: usize = 208;
    pub(crate) const ATTACHES: usize = 256;
    pub(crate) const POLLS: usize = 264;
    pub(crate) const SLEEPS: usize = 272;
    pub(crate) const FOLLOWED: usize = 280;
}

/// Offsets of words in the head of a page ring; the heads of its slots begin at `SLOTS`.
pub(crate) mod pages {
    pub(crate) const HEAD: usize = 0;
    pub(crate) const LOST_PAGES: usize = 8;
    pub(crate) const LOST_BYTES: usize = 16;
    pub(crate) const TAIL: usize = 64;
    pub(crate) const MISSED: usize = 72;
    pub(crate) const DAMAGE: usize = 80;
    pub(crate) const SLOTS: usize = 128;
}

/// Offsets of words in the head of a slot.
pub(crate) mod slot {
    pub(crate) const SEQUENCE: usize = 0;
    pub(crate) const CPU: usize = 8;
    pub(crate) const LEN: usize = 16;
    pub(crate) const EPOCH: usize = 24;
    pub(crate) const BYTES: usize = 64;
}

/// Offsets of words in the head of a control stream's ring; its bytes begin at `DATA`.
pub(crate) mod control {
    pub(crate) const HEAD: usize = 0;
    pub(crate) const STREAM: usize = 8;
    pub(crate) const START: usize = 16;
    pub(crate) const PEER: usize = 24;
    pub(crate) const TAIL: usize = 64;
    pub(crate) const DATA: usize = super::ALIGN;
}

/// Behaviour of a full ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The producer gets an error, and unread pages stay.
    Keep,
    /// The oldest page is overwritten: a flight recorder.
    Overwrite,
}

impl Mode {
    fn code(self) -> u64 {
        match self {
            Mode::Keep => 1,
            Mode::Overwrite => 2,
        }
    }

    fn of_code(code: u64) -> Option<Self> {
        [Mode::Keep, Mode::Overwrite].into_iter().find(|mode| mode.code() == code)
    }
}

/// An agent's plan of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionPlan {
    /// Number of CPUs, each with a page ring.
    pub cpus: usize,
    /// Size of a page: a sub-buffer of the kernel.
    pub page_bytes: usize,
    /// Pages per ring.
    pub slots_per_cpu: usize,
    /// Behaviour of a full ring.
    pub mode: Mode,
    /// Size of each control stream's ring.
    pub control_bytes: usize,
}

/// Why a plan is not possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegionPlanError {
    /// A number is out of bounds.
    #[error("a region can't have {value} {what}")]
    OutOfBounds {
        /// The number's name.
        what: &'static str,
        /// Its value.
        value: usize,
    },
    /// The memory is too small.
    #[error("the region needs {wanted} bytes, but the memory has {have}")]
    TooSmall {
        /// Size of the region.
        wanted: usize,
        /// Size of the memory.
        have: usize,
    },
}

impl RegionPlan {
    /// The plan with as many slots as fit in a memory of this size.
    ///
    /// # Errors
    /// When two slots per CPU do not fit, or a number is out of bounds.
    pub fn filling(mut self, memory_bytes: usize) -> Result<Self, RegionPlanError> {
        self.slots_per_cpu = 2;
        let smallest = Layout::for_plan(&self)?;
        let room = memory_bytes.saturating_sub(smallest.page_rings_at) / self.cpus;
        // A slot needs its page and its head; the heads are rounded up to whole pages.
        let slots = room.saturating_sub(ALIGN + pages::SLOTS) / (self.page_bytes + slot::BYTES);
        self.slots_per_cpu = slots.clamp(2, MAX_SLOTS);
        Layout::for_plan(&self)?.within(memory_bytes).map(|layout| layout.plan)
    }
}

/// A plan with all derived offsets. Sizes are checked, so sums and products of them stay far below 2^63.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) plan: RegionPlan,
    pub(crate) region_bytes: usize,
    pub(crate) to_host_at: usize,
    pub(crate) to_guest_at: usize,
    pub(crate) page_rings_at: usize,
    pub(crate) page_ring_bytes: usize,
}

/// Number of layout words in the header, from `header::LAYOUT`.
const LAYOUT_WORDS: usize = 11;

impl Layout {
    pub(crate) fn for_plan(plan: &RegionPlan) -> Result<Self, RegionPlanError> {
        let check = |fine: bool, what, value| {
            if fine { Ok(()) } else { Err(RegionPlanError::OutOfBounds { what, value }) }
        };
        let RegionPlan { cpus, page_bytes, slots_per_cpu, control_bytes, .. } = *plan;
        let page = page_bytes.is_power_of_two() && PAGE_BYTES.contains(&page_bytes);
        let control = control_bytes.is_power_of_two() && CONTROL_BYTES.contains(&control_bytes);
        check((1..=MAX_CPUS).contains(&cpus), "CPUs", cpus)?;
        check(page, "bytes a page", page_bytes)?;
        check((2..=MAX_SLOTS).contains(&slots_per_cpu), "slots a CPU", slots_per_cpu)?;
        check(control, "bytes a control stream", control_bytes)?;
        let to_host_at = ALIGN;
        let to_guest_at = to_host_at + control::DATA + control_bytes;
        let page_rings_at = to_guest_at + control::DATA + control_bytes;
        let page_ring_bytes = slot_pages_at(slots_per_cpu) + slots_per_cpu * page_bytes;
        let region_bytes = page_rings_at + cpus * page_ring_bytes;
        let plan = *plan;
        Ok(Self { plan, region_bytes, to_host_at, to_guest_at, page_rings_at, page_ring_bytes })
    }

    pub(crate) fn within(self, memory_bytes: usize) -> Result<Self, RegionPlanError> {
        if self.region_bytes > memory_bytes {
            return Err(RegionPlanError::TooSmall {
                wanted: self.region_bytes,
                have: memory_bytes,
            });
        }
        Ok(self)
    }

    /// Offset of a CPU's page ring.
    pub(crate) fn page_ring_at(&self, cpu: usize) -> usize {
        self.page_rings_at + cpu * self.page_ring_bytes
    }

    fn words(&self) -> [u64; LAYOUT_WORDS] {
        let word = |value: usize| value as u64;
        [
            VERSION,
            word(self.region_bytes),
            word(self.plan.page_bytes),
            word(self.plan.slots_per_cpu),
            word(self.plan.cpus),
            self.plan.mode.code(),
            word(self.plan.control_bytes),
            word(self.page_rings_at),
            word(self.page_ring_bytes),
            word(self.to_host_at),
            word(self.to_guest_at),
        ]
    }

    pub(crate) fn store(&self, map: &SharedMap) {
        for (index, word) in self.words().into_iter().enumerate() {
            map.store(header::LAYOUT + index * 8, word);
        }
    }

    /// The header's layout, if it is valid and fits the mapping. Each word is loaded once; the offsets must match the
    /// sizes.
    pub(crate) fn load(map: &SharedMap) -> Result<Self, LayoutError> {
        let mut words = [0; LAYOUT_WORDS];
        for (index, word) in words.iter_mut().enumerate() {
            *word = map.load(header::LAYOUT + index * 8);
        }
        let [version, _, page_bytes, slots_per_cpu, cpus, mode, control_bytes, ..] = words;
        if version != VERSION {
            return Err(LayoutError::Version(version));
        }
        let size = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        let plan = RegionPlan {
            cpus: size(cpus),
            page_bytes: size(page_bytes),
            slots_per_cpu: size(slots_per_cpu),
            mode: Mode::of_code(mode).ok_or(LayoutError::Mode(mode))?,
            control_bytes: size(control_bytes),
        };
        let layout = Self::for_plan(&plan)?.within(map.len_bytes())?;
        if layout.words() != words {
            return Err(LayoutError::Offsets);
        }
        Ok(layout)
    }
}

/// Offset of the first slot's page in its ring: after the heads of all slots.
pub(crate) fn slot_pages_at(slots: usize) -> usize {
    (pages::SLOTS + slots * slot::BYTES).next_multiple_of(ALIGN)
}

/// Why a header has no valid layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// Another version of this format.
    #[error("unknown version {0} of the format")]
    Version(u64),
    /// An unknown mode.
    #[error("unknown mode {0}")]
    Mode(u64),
    /// Sizes out of bounds, or larger than the memory.
    #[error(transparent)]
    Sizes(#[from] RegionPlanError),
    /// Offsets that do not match the sizes.
    #[error("offsets and sizes contradict each other")]
    Offsets,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn plan(cpus: usize, page_bytes: usize, control_bytes: usize) -> RegionPlan {
        RegionPlan { cpus, page_bytes, slots_per_cpu: 2, mode: Mode::Keep, control_bytes }
    }

    proptest! {
        #[test]
        fn memory_is_filled(cpus in 1..64_usize, shift in 12..17_u32, memory in 0..64_usize << 20) {
            let wanted = plan(cpus, 1 << shift, 8192);
            let Ok(fits) = wanted.filling(memory) else {
                prop_assert!(Layout::for_plan(&wanted).unwrap().region_bytes > memory);
                return Ok(());
            };
            let used = Layout::for_plan(&fits).unwrap().region_bytes;
            let slot_bytes = cpus * (fits.page_bytes + slot::BYTES);
            prop_assert!(used <= memory);
            prop_assert!(memory - used < 2 * slot_bytes + cpus * ALIGN, "{used} of {memory}");
        }

        #[test]
        fn a_header_of_any_words_is_refused_or_fits(words in prop::array::uniform11(prop_oneof![
            0..5_u64, Just(4096), Just(8192), any::<u64>()])) {
            let map = SharedMap::of_bytes(&[0; 65536]).unwrap();
            for (index, word) in words.into_iter().enumerate() {
                map.store(header::LAYOUT + index * 8, word);
            }
            if let Ok(layout) = Layout::load(&map) {
                prop_assert!(layout.region_bytes <= 65536);
            }
        }
    }

    #[test]
    fn what_was_stored_is_loaded() {
        let layout = Layout::for_plan(&plan(2, 4096, 4096)).unwrap();
        let map = SharedMap::of_bytes(&vec![0; layout.region_bytes]).unwrap();
        layout.store(&map);
        assert_eq!(Layout::load(&map), Ok(layout));
        for word in 0..LAYOUT_WORDS {
            let at = header::LAYOUT + word * 8;
            let before = map.load(at);
            for wrong in [0, 1 << 13, u64::MAX, before + 8] {
                map.store(at, wrong);
                assert!(Layout::load(&map).is_err(), "word {word} may be {wrong}");
            }
            map.store(at, before);
        }
    }

    #[test]
    fn plans_are_checked() {
        for wrong in [plan(0, 4096, 4096), plan(MAX_CPUS + 1, 4096, 4096), plan(1, 2048, 4096)] {
            assert!(Layout::for_plan(&wrong).is_err(), "{wrong:?}");
        }
        for wrong in [plan(1, 1 << 17, 4096), plan(1, 12288, 4096), plan(1, 4096, 1 << 21)] {
            assert!(Layout::for_plan(&wrong).is_err(), "{wrong:?}");
        }
        let largest =
            RegionPlan { slots_per_cpu: MAX_SLOTS, ..plan(MAX_CPUS, *PAGE_BYTES.end(), 1 << 20) };
        assert!(Layout::for_plan(&largest).unwrap().region_bytes < 1 << 54);
    }
}
