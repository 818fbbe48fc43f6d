//! Which thread ran on a CPU when a part of its stream begins, where events don't say it: the one that the
//! next switch takes away. Across a loss nothing is known.

use std::sync::OnceLock;

use super::parts::Part;

/// Ids that no thread has: the kernel's end at 2^22 (`PID_MAX_LIMIT`).
const UNKNOWN: u32 = 1 << 30;

/// Parts that are looked at in each direction, at most.
const MOST_LOOKED_AT: usize = 1 << 10;

/// The switches of a part: the thread before the first, and the one after the last.
pub(super) type Switches = Option<(i32, i32)>;

/// What is known of a stream's parts, as they are looked at.
#[derive(Debug, Default)]
pub(super) struct Threads {
    switches: Vec<OnceLock<Switches>>,
}

impl Threads {
    pub(super) fn new(parts: usize) -> Self {
        Self { switches: (0..parts).map(|_| OnceLock::new()).collect() }
    }

    /// The thread that runs when the part `at` begins. `look` finds a part's switches. Without any
    /// switch between two losses it was one thread all the time, whose id isn't known: it has one of its
    /// own here.
    pub(super) fn at(
        &self,
        parts: &[Part],
        at: usize,
        cpu: u32,
        look: impl Fn(&Part) -> Switches,
    ) -> i32 {
        let switches = |at: usize| -> Switches {
            let part = parts.get(at)?;
            *self.switches.get(at)?.get_or_init(|| look(part))
        };
        let follows = |at: usize| match (parts.get(at), parts.get(at + 1)) {
            (Some(this), Some(next)) => this.is_followed_by(next),
            _ => false,
        };
        let mut next = at;
        loop {
            if let Some((before, _)) = switches(next) {
                return before;
            }
            if !follows(next) || next - at >= MOST_LOOKED_AT {
                break;
            }
            next += 1;
        }
        let mut first = at;
        while first > 0 && follows(first - 1) && at - first < MOST_LOOKED_AT {
            first -= 1;
            if let Some((_, after)) = switches(first) {
                return after;
            }
        }
        let number = (cpu & 0x3ff) << 18 | (first as u32 & 0x3_ffff);
        (UNKNOWN | number).cast_signed()
    }
}

/// Whether an id is one of those that stand for a thread whose own isn't known.
pub(super) fn is_unknown(thread: u32) -> bool {
    thread & UNKNOWN != 0 && thread >> 31 == 0
}

#[cfg(test)]
mod tests {
    use ctf::Packet;
    use ringbuf::Missed;

    use super::*;

    fn part(before: Missed) -> Part {
        let packet = Packet::default();
        Part { file: 0, packet, bits: 0..0, cycles: 0, before, behind: Missed::Nothing }
    }

    #[test]
    fn the_next_switch_says_who_ran_but_not_across_a_loss() {
        let mut parts = vec![part(Missed::Nothing); 5];
        for (at, one) in parts.iter_mut().enumerate() {
            one.file = at;
            if at == 3 {
                one.before = Missed::Unknown;
            }
        }
        let known = [None, Some((7, 8)), None, None, None];
        let threads = Threads::new(5);
        let at = |at| threads.at(&parts, at, 1, |part| known.get(part.file).copied().flatten());
        assert_eq!([at(0), at(1), at(2)], [7, 7, 8]);
        assert!(is_unknown(at(3).cast_unsigned()));
        assert_eq!(at(3), at(4));
        assert!(!is_unknown(7) && !is_unknown((-1_i32).cast_unsigned()));
    }
}
