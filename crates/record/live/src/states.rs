//! States of a vCPU's thread, and their times: the states of `hyperscope cpu`.

use timeline::VcpuActivity;

/// All activities, in the order of the programs and of the type, with their names in the output.
pub const ACTIVITIES: [(VcpuActivity, &str); 9] = [
    (VcpuActivity::Guest, "guest"),
    (VcpuActivity::BeforeExit, "before_exit"),
    (VcpuActivity::Kernel, "exit_kernel"),
    (VcpuActivity::User, "exit_user"),
    (VcpuActivity::HaltPoll, "halt_poll"),
    (VcpuActivity::Preempted, "preempted"),
    (VcpuActivity::Waiting, "waiting"),
    (VcpuActivity::Blocked, "blocked"),
    (VcpuActivity::Unknown, "unknown"),
];

/// Time in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct States {
    times_ns: [u64; ACTIVITIES.len()],
    nested_ns: u64,
}

impl States {
    /// From times in the order of [`ACTIVITIES`].
    #[must_use]
    pub fn new(times_ns: [u64; ACTIVITIES.len()]) -> Self {
        Self { times_ns, nested_ns: 0 }
    }

    /// Sets the part of the guest's time in which nested guests ran.
    #[must_use]
    pub fn with_nested(self, nested_ns: u64) -> Self {
        Self { nested_ns, ..self }
    }

    /// The part of the guest's time in which nested guests ran.
    #[must_use]
    pub fn nested_ns(&self) -> u64 {
        self.nested_ns
    }

    /// Adds time of nested guests, which counts as guest time, too.
    pub fn give_nested(&mut self, took_ns: u64) {
        self.give(VcpuActivity::Guest, took_ns);
        self.nested_ns = self.nested_ns.saturating_add(took_ns);
    }

    #[must_use]
    pub fn time_ns(&self, activity: VcpuActivity) -> u64 {
        self.times_ns[activity as usize]
    }

    /// Adds time to a state.
    pub fn give(&mut self, activity: VcpuActivity, took_ns: u64) {
        let to = &mut self.times_ns[activity as usize];
        *to = to.saturating_add(took_ns);
    }

    #[must_use]
    pub fn total_ns(&self) -> u64 {
        self.times_ns.iter().copied().fold(0, u64::saturating_add)
    }

    pub fn add(&mut self, other: &Self) {
        for (to, more) in self.times_ns.iter_mut().zip(other.times_ns) {
            *to = to.saturating_add(more);
        }
        self.nested_ns = self.nested_ns.saturating_add(other.nested_ns);
    }

    /// The difference to `before`. Halt polling is detected only at its end: its earlier part was counted as kernel
    /// time, and is subtracted from the polling time now, so that the sum stays correct.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let mut difference = *self;
        let kernel = VcpuActivity::Kernel as usize;
        let shown_ns = before.times_ns[kernel].saturating_sub(difference.times_ns[kernel]);
        difference.times_ns[kernel] += shown_ns;
        let poll = &mut difference.times_ns[VcpuActivity::HaltPoll as usize];
        *poll = poll.saturating_sub(shown_ns);
        for (to, before) in difference.times_ns.iter_mut().zip(before.times_ns) {
            *to = to.saturating_sub(before);
        }
        difference.nested_ns = difference.nested_ns.saturating_sub(before.nested_ns);
        difference
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_activity_stands_at_its_own_number() {
        assert!(ACTIVITIES.iter().enumerate().all(|(at, (activity, _))| *activity as usize == at));
    }

    #[test]
    fn polling_that_was_shown_as_the_kernels_is_not_shown_twice() {
        let before = States::new([0, 0, 300, 0, 0, 0, 0, 0, 0]);
        // 250 of these were polling, and 50 more; then 20 in the kernel.
        let after = States::new([0, 0, 70, 0, 300, 0, 0, 0, 0]);
        let since = after.since(&before);
        assert_eq!(since.total_ns(), after.total_ns() - before.total_ns());
        assert_eq!(
            (since.time_ns(VcpuActivity::Kernel), since.time_ns(VcpuActivity::HaltPoll)),
            (0, 70)
        );
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
            let polled = polled.min(after.time_ns(VcpuActivity::Kernel));
            after.times_ns[VcpuActivity::Kernel as usize] -= polled;
            after.times_ns[VcpuActivity::HaltPoll as usize] += polled;
            let before = States::new(before);
            let since = after.since(&before);
            prop_assert_eq!(since.total_ns(), after.total_ns() - before.total_ns());
        }
    }
}
