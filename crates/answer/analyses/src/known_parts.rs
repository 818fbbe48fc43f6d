//! Known parts of exits: a part without events is unknown, not zero.

use timeline::{ExitSpan, Parts};

use crate::recorded::RecordedParts;
use crate::tally::Tally;

/// Parts of an exit's time that the recording has events for. A part without events is `None`, and its time stays
/// in the part that contains it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownParts {
    /// Time in the kernel; `None` if it includes user space or waiting.
    pub kernel_ns: Option<u64>,
    /// Time that cannot be split into kernel, user space and waiting.
    pub not_split_ns: u64,
    /// CPU time, including the work before the exit event; `None` if it includes waiting.
    pub cost_ns: Option<u64>,
    /// Time in user space.
    pub user_ns: Option<u64>,
    /// Replaces `user_ns` if the return from user space was not recorded.
    pub user_and_return_ns: Option<u64>,
    pub off_cpu_ns: Option<u64>,
    /// The runnable part of `off_cpu_ns`.
    pub runnable_ns: Option<u64>,
    /// The blocked part of `off_cpu_ns`.
    pub blocked_ns: Option<u64>,
    /// Halt polling.
    pub halt_poll_ns: Option<u64>,
    /// Host work before the exit event.
    pub before_exit_ns: Option<u64>,
}

impl KnownParts {
    /// Known parts of a row's sums.
    #[must_use]
    pub fn new(tally: &Tally, recorded: &RecordedParts) -> Self {
        let doubt = (tally.user_return_unseen > 0, tally.poll_unknown > 0);
        Self::from_parts(&tally.parts, tally.before_exit_ns, doubt, recorded)
    }

    /// Known parts of one exit with an entry.
    #[inline]
    #[must_use]
    pub fn of_exit(exit: &ExitSpan, recorded: &RecordedParts) -> Self {
        let doubt = (exit.user_return_unseen, exit.poll_unknown);
        Self::from_parts(&exit.parts, exit.before_exit_ns, doubt, recorded)
    }

    /// `doubt`: the return from user space was not seen, and polling could not be separated.
    #[inline]
    pub(crate) fn from_parts(
        parts: &Parts,
        before_exit_ns: u64,
        (user_return_unseen, poll_unknown): (bool, bool),
        recorded: &RecordedParts,
    ) -> Self {
        let Parts { kernel_ns, user_ns, runnable_ns, blocked_ns, halt_poll_ns } = *parts;
        let return_seen = recorded.user_return && !user_return_unseen;
        let split = recorded.off_cpu && recorded.wake;
        let polled = recorded.halt_poll && !poll_unknown;
        // If some polling is unknown, all polling stays in the kernel's part.
        let in_kernel_ns = if polled { 0 } else { halt_poll_ns };
        let rest_ns = kernel_ns.saturating_add(in_kernel_ns);
        let ran_ns = rest_ns.saturating_add(user_ns).saturating_add(before_exit_ns);
        Self {
            kernel_ns: recorded.is_split().then_some(rest_ns),
            not_split_ns: if recorded.is_split() { 0 } else { rest_ns },
            cost_ns: recorded.off_cpu.then_some(ran_ns),
            user_ns: (recorded.user && return_seen).then_some(user_ns),
            user_and_return_ns: (recorded.user && !return_seen).then_some(user_ns),
            off_cpu_ns: recorded.off_cpu.then_some(runnable_ns + blocked_ns),
            runnable_ns: split.then_some(runnable_ns),
            blocked_ns: split.then_some(blocked_ns),
            halt_poll_ns: polled.then_some(halt_poll_ns),
            before_exit_ns: recorded.host_work.then_some(before_exit_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: RecordedParts = RecordedParts {
        user: true,
        user_return: true,
        off_cpu: true,
        wake: true,
        halt_poll: true,
        host_work: true,
        nested: false,
    };

    fn tally() -> Tally {
        let parts = Parts {
            kernel_ns: 10,
            user_ns: 20,
            runnable_ns: 300,
            blocked_ns: 400,
            halt_poll_ns: 50,
        };
        Tally { parts, before_exit_ns: 7, ..Tally::default() }
    }

    #[test]
    fn cost_is_what_ran() {
        let parts = KnownParts::new(&tally(), &ALL);
        assert_eq!((parts.kernel_ns, parts.not_split_ns), (Some(10), 0));
        assert_eq!(parts.cost_ns, Some(7 + 10 + 20));
    }

    #[test]
    fn what_is_kernel_or_user_space_ran_all_the_same() {
        let parts = KnownParts::new(&tally(), &RecordedParts { user: false, ..ALL });
        assert_eq!((parts.kernel_ns, parts.not_split_ns), (None, 10));
        assert_eq!(parts.cost_ns, Some(7 + 10 + 20));
    }

    #[test]
    fn what_may_have_waited_has_no_cost() {
        let parts = KnownParts::new(&tally(), &RecordedParts { off_cpu: false, ..ALL });
        assert_eq!((parts.kernel_ns, parts.not_split_ns, parts.cost_ns), (None, 10, None));
    }

    /// The known parts add up to the total time for each set of recorded events.
    #[test]
    fn known_parts_are_the_whole() {
        for bits in 0..64_u8 {
            let has = |bit: u8| bits >> bit & 1 == 1;
            let recorded = RecordedParts {
                user: has(0),
                user_return: has(1),
                off_cpu: has(2),
                wake: has(3),
                halt_poll: has(4),
                host_work: has(5),
                nested: false,
            };
            // Time without events was never moved out of the kernel's part.
            let mut tally = tally();
            let parts = &mut tally.parts;
            for (recorded, part) in [
                (recorded.user, &mut parts.user_ns),
                (recorded.off_cpu, &mut parts.runnable_ns),
                (recorded.off_cpu, &mut parts.blocked_ns),
            ] {
                if !recorded {
                    parts.kernel_ns += std::mem::take(part);
                }
            }
            let known = KnownParts::new(&tally, &recorded);
            let parts = [
                known.kernel_ns,
                known.user_ns,
                known.user_and_return_ns,
                known.off_cpu_ns,
                known.halt_poll_ns,
            ];
            let sum = parts.iter().flatten().sum::<u64>() + known.not_split_ns;
            assert_eq!(sum, tally.parts.total_ns(), "{recorded:?}");
            let ran = known.kernel_ns.unwrap_or(known.not_split_ns) + tally.parts.user_ns;
            assert_eq!(known.cost_ns, recorded.off_cpu.then_some(ran + 7), "{recorded:?}");
        }
    }
}
