//! Splits the memory between its writers; each computes the parts from the size alone.
//!
//! ```text
//!  0                      ⅝        ¾                  1
//!  │ the agent's region   │ spans  │ a module's frames │
//! ```
//! Each part is reserved for its owner, even if that is not present.

use crate::layout::ALIGN;

/// The spans' part of the memory: an eighth, within a min and a max.
const SPANS_PART: usize = 8;
const SPANS_BYTES: (usize, usize) = (64 << 10, 16 << 20);

/// Size of the agent's part, at the beginning.
#[must_use]
pub fn agent_bytes(memory_bytes: usize) -> usize {
    spans_part(memory_bytes).map_or_else(|| frames_at(memory_bytes), |(at, _)| at)
}

/// Offset and size of the spans' part; `None` if the memory is too small.
#[must_use]
pub fn spans_part(memory_bytes: usize) -> Option<(usize, usize)> {
    let (min, max) = SPANS_BYTES;
    if memory_bytes / SPANS_PART < min {
        return None;
    }
    let bytes = (memory_bytes / SPANS_PART).min(max) & !(ALIGN - 1);
    let at = frames_at(memory_bytes).checked_sub(bytes)? & !(ALIGN - 1);
    Some((at, bytes))
}

/// Offset of a kernel module's frames, which extend to the end. `kmod/hyperscope_guest/memory.c` computes the same.
pub(crate) fn frames_at(memory_bytes: usize) -> usize {
    memory_bytes / 4 * 3
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn parts_do_not_overlap(memory in 0_usize..1 << 40) {
            let agent = agent_bytes(memory);
            let end = spans_part(memory).map_or(agent, |(at, bytes)| {
                assert!(at >= agent && at.is_multiple_of(ALIGN) && bytes.is_multiple_of(ALIGN));
                at + bytes
            });
            prop_assert!(agent <= end && end <= frames_at(memory) && frames_at(memory) <= memory);
            prop_assert!(agent >= memory / 2);
        }
    }
}
