//! A frame as a guest stored it in shared memory: words, and how much of them is there.

use crate::MAX_WORDS;

/// Bits below the time in the word that says how much is there.
const FILLED_BITS: u32 = 10;
/// Bits of the TSC that this word leaves out.
const FILLED_SHIFT: u32 = 4;
/// Bits of the longest frame; fits the bits of its length.
const MAX_BITS: u64 = 64 * MAX_WORDS as u64;

/// A frame with the time of its last event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameWords {
    words: [u64; MAX_WORDS],
    used_bits: u16,
    /// The guest's TSC at the last event, to 2^4 cycles; what it was before, if there is none.
    pub last_tsc: u64,
    /// Whether the guest has ended it; if not, there is no end in it.
    pub is_whole: bool,
}

impl FrameWords {
    /// A frame out of the word that says what is there, and its words; those that it doesn't
    /// speak of are left out.
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

    /// Whether nothing of it is there.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.used_bits == 0
    }

    /// The word that says what is there.
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
