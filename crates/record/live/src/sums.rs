//! Sums over the exits of a row: the numbers of `hyperscope exits`, with a histogram.

use timeline::Parts;

use crate::histogram::Histogram;

/// Sums over exits that ended in an interval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Exits, with or without an entry.
    pub count: u64,
    /// Exits with an entry: only these have times.
    pub paired: u64,
    /// From exit to entry.
    pub time_ns: u64,
    /// Host work before `kvm_exit`.
    pub before_exit_ns: u64,
    /// The guest's time before these exits.
    pub guest_ns: u64,
    /// Parts of the time; they add up to `time_ns`.
    pub parts: Parts,
    /// Paired exits by handler: the kernel, the VMM, level 1.
    pub handled: [u64; 3],
    /// Paired exits whose return from the VMM was not seen.
    pub user_return_unseen: u64,
    /// Paired exits whose halt polling could not be separated from the rest.
    pub poll_unknown: u64,
    pub times: Histogram,
}

impl Sums {
    /// CPU time of handling the exits.
    #[must_use]
    pub fn cost_ns(&self) -> u64 {
        let on_cpu_ns = self.parts.kernel_ns.saturating_add(self.parts.user_ns);
        on_cpu_ns.saturating_add(self.before_exit_ns)
    }

    pub fn add(&mut self, other: &Self) {
        let add = |to: &mut u64, more: u64| *to = to.saturating_add(more);
        add(&mut self.count, other.count);
        add(&mut self.paired, other.paired);
        add(&mut self.time_ns, other.time_ns);
        add(&mut self.before_exit_ns, other.before_exit_ns);
        add(&mut self.guest_ns, other.guest_ns);
        self.parts.add(&other.parts);
        for (to, more) in self.handled.iter_mut().zip(other.handled) {
            add(to, more);
        }
        add(&mut self.user_return_unseen, other.user_return_unseen);
        add(&mut self.poll_unknown, other.poll_unknown);
        self.times.add(&other.times);
    }
}
