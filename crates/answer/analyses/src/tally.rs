//! Sums over the exits of a group.

use timeline::{ExitSpan, Handler, Outcome, Parts};

use crate::distribution::Distribution;

/// Sums over exits. Times cover paired exits only.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Exits, whether or not their entry was seen.
    pub count: u64,
    /// Exits without times, because events were lost during them.
    pub dropped: u64,
    /// Durations from exit to entry.
    pub durations: Distribution,
    /// CPU time of exits: before the exit event, in the kernel and in user space. Only valid if switches are
    /// recorded.
    pub costs: Distribution,
    /// Time by part; the parts add up to the sum of the durations.
    pub parts: Parts,
    /// Paired exits that the kernel handled.
    pub by_kernel: u64,
    /// Paired exits that the VMM handled.
    pub by_user: u64,
    /// Paired exits that level 1 handled.
    pub by_l1: u64,
    /// Paired exits without an event for the return from user space.
    pub user_return_unseen: u64,
    /// Paired exits whose halt polling could not be separated.
    pub poll_unknown: u64,
    /// Host work before `kvm_exit`.
    pub before_exit_ns: u64,
    /// Time in the guest before these exits.
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
