//! A frame in shared memory: its words, and how much of them is valid.

use crate::MAX_WORDS;

/// Bits below the time in the word with the fill level.
const FILLED_BITS: u32 = 10;
/// Number of low TSC bits that this word omits.
const FILLED_SHIFT: u32 = 4;
/// Bits of the longest frame, which fit into the bits of its length.
const MAX_BITS: u64 = 64 * MAX_WORDS as u64;

/// A frame with the time of its last event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameWords {
    words: [u64; MAX_WORDS],
    used_bits: u16,
    /// The guest's TSC at the last event, with a resolution of 2^4 cycles; without events, the
    /// earlier TSC.
    pub last_tsc: u64,
    /// Whether the guest has finished the frame; otherwise it has no end record.
    pub is_whole: bool,
}

impl FrameWords {
    /// A frame from the word with the fill level and the frame's words; ignores words beyond the
    /// fill level.
    pub fn new(filled: u64, words: impl IntoIterator<Item = u64>, is_whole: bool) -> Self {
        let used = (filled & ((1 << FILLED_BITS) - 1)).min(MAX_BITS);
        let mut buffer = [0; MAX_WORDS];
        let count = usize::try_from(used.div_ceil(64)).unwrap_or(0);
        for (to, from) in buffer.iter_mut().take(count).zip(words) {
            *to = from;
        }
        let used_bits = u16::try_from(used).unwrap_or(0);
        let last_tsc = filled >> FILLED_BITS << FILLED_SHIFT;
        Self { words: buffer, used_bits, last_tsc, is_whole }
    }

    /// Whether it has no content.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.used_bits == 0
    }

    /// The word with the fill level.
    pub(crate) fn filled(&self) -> u64 {
        (self.last_tsc >> FILLED_SHIFT) << FILLED_BITS | u64::from(self.used_bits)
    }

    /// The words that are used.
    pub(crate) fn used(&self) -> &[u64] {
        self.words.get(..usize::from(self.used_bits).div_ceil(64)).unwrap_or_default()
    }

    /// How many bits are used.
    pub(crate) fn used_bits(&self) -> u32 {
        self.used_bits.into()
    }
}
