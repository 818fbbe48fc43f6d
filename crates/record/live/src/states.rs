//! What a vCPU's thread does, and for how long: the states of `hyperscope cpu`.

/// What a vCPU's thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(usize)]
pub enum Activity {
    /// It runs its guest.
    Guest,
    /// It has left its guest, as the host's work shows, and `kvm_exit` is yet to come.
    BeforeExit,
    /// It handles an exit in the kernel.
    Kernel,
    /// It runs in the VMM.
    User,
    /// It polls for work before it gives up the CPU.
    HaltPoll,
    /// It was taken off the CPU while it could have run on.
    Preempted,
    /// It has been woken up and waits for a CPU.
    Waiting,
    /// It sleeps.
    Blocked,
    /// Not known.
    Unknown,
}

/// All of them, in the order of the programs, with the names that scripts see.
pub const ACTIVITIES: [(Activity, &str); 9] = [
    (Activity::Guest, "guest"),
    (Activity::BeforeExit, "before_exit"),
    (Activity::Kernel, "exit_kernel"),
    (Activity::User, "exit_user"),
    (Activity::HaltPoll, "halt_poll"),
    (Activity::Preempted, "preempted"),
    (Activity::Waiting, "waiting"),
    (Activity::Blocked, "blocked"),
    (Activity::Unknown, "unknown"),
];

/// Times in each of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct States([u64; ACTIVITIES.len()]);

impl States {
    /// Times in the order of [`ACTIVITIES`].
    #[must_use]
    pub fn new(times_ns: [u64; ACTIVITIES.len()]) -> Self {
        Self(times_ns)
    }

    /// The time of one.
    #[must_use]
    pub fn of(&self, activity: Activity) -> u64 {
        self.0[activity as usize]
    }

    /// Adds to the time of one.
    pub fn give(&mut self, activity: Activity, took_ns: u64) {
        let to = &mut self.0[activity as usize];
        *to = to.saturating_add(took_ns);
    }

    /// Of all.
    #[must_use]
    pub fn total_ns(&self) -> u64 {
        self.0.iter().copied().fold(0, u64::saturating_add)
    }

    /// Adds another's.
    pub fn add(&mut self, other: &Self) {
        for (to, more) in self.0.iter_mut().zip(other.0) {
            *to = to.saturating_add(more);
        }
    }

    /// What came since `before`. Polling is known only when it has ended: what of it lay before was shown as the
    /// kernel's, and is taken from the polling of now, so that the sum stays that of the time.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let mut own = *self;
        let kernel = Activity::Kernel as usize;
        let shown_ns = before.0[kernel].saturating_sub(own.0[kernel]);
        own.0[kernel] += shown_ns;
        let poll = &mut own.0[Activity::HaltPoll as usize];
        *poll = poll.saturating_sub(shown_ns);
        for (to, before) in own.0.iter_mut().zip(before.0) {
            *to = to.saturating_sub(before);
        }
        own
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn polling_that_was_shown_as_the_kernels_is_not_shown_twice() {
        let before = States::new([0, 0, 300, 0, 0, 0, 0, 0, 0]);
        // 250 of these were polling, and 50 more; then 20 in the kernel.
        let after = States::new([0, 0, 70, 0, 300, 0, 0, 0, 0]);
        let since = after.since(&before);
        assert_eq!(since.total_ns(), after.total_ns() - before.total_ns());
        assert_eq!((since.of(Activity::Kernel), since.of(Activity::HaltPoll)), (0, 70));
    }

    proptest! {
        #[test]
        fn intervals_add_up(
            before in proptest::array::uniform9(0u64..1_000_000),
            more in proptest::array::uniform9(0u64..1_000_000),
            polled in 0u64..2_000_000,
        ) {
            let mut after = States::new(before);
            after.add(&States::new(more));
            let polled = polled.min(after.of(Activity::Kernel));
            after.0[Activity::Kernel as usize] -= polled;
            after.0[Activity::HaltPoll as usize] += polled;
            let before = States::new(before);
            let since = after.since(&before);
            prop_assert_eq!(since.total_ns(), after.total_ns() - before.total_ns());
        }
    }
}
