//! Which thread ran on a CPU when a part of its stream begins, where events don't say it: the one that the
//! next switch takes away. Across a loss nothing is known.

use std::sync::OnceLock;

use super::parts::Part;

/// Ids that no thread has: the kernel's end at 2^22 (`PID_MAX_LIMIT`).
const UNKNOWN: u32 = 1 << 30;

/// The same for a stream that never shows which thread runs, with the CPU's number below it.
const NEVER_KNOWN: u32 = UNKNOWN | 1 << 29;

/// Parts that are looked at in each direction, at most.
const MAX_LOOKED_AT: usize = 1 << 10;

/// The known facts about a stream's parts, collected while they are read.
#[derive(Debug, Default)]
pub(super) struct Threads {
    /// Of each part, the thread before its first switch, and the one after its last.
    first: Vec<OnceLock<Option<i32>>>,
    last: Vec<OnceLock<Option<i32>>>,
}

impl Threads {
    pub(super) fn new(parts: usize) -> Self {
        let unknown = || (0..parts).map(|_| OnceLock::new()).collect();
        Self { first: unknown(), last: unknown() }
    }

    /// The thread that runs when the part `at` begins. `first` and `last` look into a part for the thread
    /// before its first switch, and for the one after its last. Without any switch between two losses it
    /// was one thread all the time, whose id isn't known: it has one of its own here.
    pub(super) fn at(
        &self,
        parts: &[Part],
        at: usize,
        cpu: u32,
        first: impl Fn(&Part) -> Option<i32>,
        last: impl Fn(&Part) -> Option<i32>,
    ) -> i32 {
        let first_of = |at: usize| {
            let part = parts.get(at)?;
            *self.first.get(at)?.get_or_init(|| first(part))
        };
        let last_of = |at: usize| {
            let part = parts.get(at)?;
            *self.last.get(at)?.get_or_init(|| last(part))
        };
        let follows = |at: usize| match (parts.get(at), parts.get(at + 1)) {
            (Some(this), Some(next)) => this.is_followed_by(next),
            _ => false,
        };
        let mut next = at;
        loop {
            if let Some(before) = first_of(next) {
                return before;
            }
            if !follows(next) || next - at >= MAX_LOOKED_AT {
                break;
            }
            next += 1;
        }
        let mut begin = at;
        while begin > 0 && follows(begin - 1) && at - begin < MAX_LOOKED_AT {
            begin -= 1;
            if let Some(after) = last_of(begin) {
                return after;
            }
        }
        let number = (cpu & 0x3ff) << 18 | (begin as u32 & 0x3_ffff);
        (UNKNOWN | number).cast_signed()
    }
}

/// The thread of all events of a CPU whose stream never says which one runs.
pub(super) fn never_known(cpu: u32) -> i32 {
    (NEVER_KNOWN | cpu & 0x3fff).cast_signed()
}

/// Whether an id is one of those that stand for a thread whose own isn't known.
pub(super) fn is_unknown(thread: u32) -> bool {
    thread & UNKNOWN != 0 && thread >> 31 == 0
}

#[cfg(test)]
mod tests {
    use ctf::Packet;
    use ftrace::ringbuf::Missed;

    use super::*;

    fn part(before: Missed) -> Part {
        let packet = std::sync::Arc::new(Packet::default());
        Part { file: 0, packet, bits: 0..0, cycles: 0, before, behind: Missed::Nothing }
    }

    #[test]
    fn the_next_switch_says_who_ran_but_not_across_a_loss() {
        let mut parts = vec![part(Missed::Nothing); 5];
        for (at, part) in parts.iter_mut().enumerate() {
            part.file = at;
            if at == 3 {
                part.before = Missed::Unknown;
            }
        }
        let known = [None, Some((7, 8)), None, None, None];
        let threads = Threads::new(5);
        let known = |part: &Part| known.get(part.file).copied().flatten();
        let first = |part: &Part| known(part).map(|(before, _)| before);
        let last = |part: &Part| known(part).map(|(_, after)| after);
        let at = |at| threads.at(&parts, at, 1, first, last);
        assert_eq!([at(0), at(1), at(2)], [7, 7, 8]);
        assert!(is_unknown(at(3).cast_unsigned()));
        assert_eq!(at(3), at(4));
        assert!(!is_unknown(7) && !is_unknown((-1_i32).cast_unsigned()));
    }
}
