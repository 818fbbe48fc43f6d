//! What is added up over the exits of one group.

use timeline::{ExitSpan, Handler, Outcome, Parts};

use crate::distribution::Distribution;

/// Sums over exits. Times cover paired exits only.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Exits, whether or not their entry was seen.
    pub count: u64,
    /// Exits left out of the times because events were lost while they lasted.
    pub dropped: u64,
    /// Durations, exit to entry.
    pub durations: Distribution,
    /// Running to handle them: before the exit event, in the kernel and in user space. Says something
    /// where switches are recorded.
    pub costs: Distribution,
    /// Where the time went; adds up to the sum of the durations.
    pub parts: Parts,
    /// Paired exits by handler.
    pub by_kernel: u64,
    /// See `by_kernel`.
    pub by_user: u64,
    /// See `by_kernel`.
    pub by_l1: u64,
    /// Paired exits whose return from user space was not seen.
    pub user_return_unseen: u64,
    /// Paired exits whose polling could not be separated from the rest.
    pub poll_unknown: u64,
    /// Host work seen before `kvm_exit`.
    pub before_exit_ns: u64,
    /// Time the guest ran before these exits.
    pub guest_ns: u64,
}

impl Tally {
    #[inline]
    pub fn add(&mut self, span: &ExitSpan) {
        self.count += 1;
        self.before_exit_ns = self.before_exit_ns.saturating_add(span.before_exit_ns);
        self.guest_ns = self.guest_ns.saturating_add(span.guest_ns);
        match span.outcome {
            Outcome::Paired => {}
            Outcome::Unpaired => return,
            Outcome::LostIn => {
                self.dropped += 1;
                return;
            }
        }
        self.durations.add(span.duration_ns());
        let on_cpu_ns = span.parts.kernel_ns.saturating_add(span.parts.user_ns);
        self.costs.add(on_cpu_ns.saturating_add(span.before_exit_ns));
        self.parts.add(&span.parts);
        self.user_return_unseen += u64::from(span.user_return_unseen);
        self.poll_unknown += u64::from(span.poll_unknown);
        match span.handler {
            Handler::Kernel => self.by_kernel += 1,
            Handler::User => self.by_user += 1,
            Handler::L1 => self.by_l1 += 1,
        }
    }

    /// Adds another group's exits.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.dropped += other.dropped;
        self.durations.merge(&other.durations);
        self.costs.merge(&other.costs);
        self.parts.add(&other.parts);
        self.by_kernel += other.by_kernel;
        self.by_user += other.by_user;
        self.by_l1 += other.by_l1;
        self.user_return_unseen += other.user_return_unseen;
        self.poll_unknown += other.poll_unknown;
        self.before_exit_ns = self.before_exit_ns.saturating_add(other.before_exit_ns);
        self.guest_ns = self.guest_ns.saturating_add(other.guest_ns);
    }

    /// Exits with a duration.
    #[must_use]
    pub fn paired(&self) -> u64 {
        self.durations.count()
    }
}
