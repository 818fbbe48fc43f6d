//! Determines the running thread at the start of a part if events do not have it: the previous
//! thread of the next switch. A loss hides switches, so nothing is derived across it.

use std::sync::OnceLock;

use super::parts::Part;

/// Ids that no thread has: the kernel's ids end at 2^22 (`PID_MAX_LIMIT`).
const UNKNOWN: u32 = 1 << 30;

/// For a stream that never shows its thread; the low bits are the CPU number.
const NEVER_KNOWN: u32 = UNKNOWN | 1 << 29;

/// Maximum parts to search in each direction.
const MAX_LOOKED_AT: usize = 1 << 10;

/// Known facts about a stream's parts, collected while they are read.
#[derive(Debug, Default)]
pub(super) struct Threads {
    /// By part: the thread before its first switch, and the one after its last.
    first: Vec<OnceLock<Option<i32>>>,
    last: Vec<OnceLock<Option<i32>>>,
}

impl Threads {
    pub(super) fn new(parts: usize) -> Self {
        let unknown = || (0..parts).map(|_| OnceLock::new()).collect();
        Self { first: unknown(), last: unknown() }
    }

    /// The running thread at the start of part `at`. `first` and `last` search a part for the
    /// thread before its first switch, and after its last. Without any switch between two losses, a
    /// single thread ran the whole time, but its id is unknown: it gets a synthetic id.
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

/// The synthetic thread id for a CPU whose stream never shows its thread.
pub(super) fn never_known(cpu: u32) -> i32 {
    (NEVER_KNOWN | cpu & 0x3fff).cast_signed()
}

/// Whether an id is synthetic, for a thread with unknown id.
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
