//! What is known of the parts of an exit: a part without events is not zero.

use timeline::Parts;

use crate::exits::Recorded;
use crate::tally::Tally;

/// The parts of a row as far as the recording has events for them: what it has none for is `None`,
/// and its time stays in the part that would have held it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownParts {
    /// In the kernel.
    pub kernel_ns: u64,
    /// In user space.
    pub user_ns: Option<u64>,
    /// In place of `user_ns`, where the return from user space was not recorded.
    pub user_and_return_ns: Option<u64>,
    /// Off the CPU.
    pub off_cpu_ns: Option<u64>,
    /// Of that, able to run.
    pub runnable_ns: Option<u64>,
    /// Of that, waiting for something.
    pub blocked_ns: Option<u64>,
    /// Polling for work.
    pub halt_poll_ns: Option<u64>,
    /// Host work before the exit event.
    pub before_exit_ns: Option<u64>,
}

impl KnownParts {
    /// What is known of the sums of a row.
    #[must_use]
    pub fn new(tally: &Tally, recorded: &Recorded) -> Self {
        let Parts { kernel_ns, user_ns, runnable_ns, blocked_ns, halt_poll_ns } = tally.parts;
        let return_seen = recorded.user_return && tally.user_return_unseen == 0;
        let split = recorded.off_cpu && recorded.wake;
        let polled = recorded.halt_poll && tally.poll_unknown == 0;
        // What is not told apart everywhere stays in the kernel's part as a whole.
        let in_kernel_ns = if polled { 0 } else { halt_poll_ns };
        Self {
            kernel_ns: kernel_ns.saturating_add(in_kernel_ns),
            user_ns: (recorded.user && return_seen).then_some(user_ns),
            user_and_return_ns: (recorded.user && !return_seen).then_some(user_ns),
            off_cpu_ns: recorded.off_cpu.then_some(runnable_ns + blocked_ns),
            runnable_ns: split.then_some(runnable_ns),
            blocked_ns: split.then_some(blocked_ns),
            halt_poll_ns: polled.then_some(halt_poll_ns),
            before_exit_ns: recorded.host_work.then_some(tally.before_exit_ns),
        }
    }
}
