//! Sums over exits for rules, small enough to store for every address.

use timeline::{ExitSpan, Handler, Outcome, Parts};

use super::{Amount, Fact, SavingOf};
use crate::longest_span::LongestSpan;
use crate::recorded::RecordedParts;

/// Sums over exits; times cover paired exits only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ExitSums {
    /// Exits, whether or not their entry was seen.
    pub(crate) count: u64,
    /// Exits with a time.
    paired: u64,
    /// Time from exit to entry.
    time_ns: u64,
    /// `time_ns` by part.
    pub(crate) parts: Parts,
    /// Host work before the exits, and time in the guest before that.
    before_exit_ns: u64,
    pub(crate) guest_ns: u64,
    /// Paired exits handled in user space.
    pub(crate) by_user: u64,
    /// Start of the first exit.
    pub(crate) first_ns: Option<u64>,
    /// The longest exit, up to its entry.
    pub(crate) longest: LongestSpan,
}

impl ExitSums {
    pub(crate) fn add(&mut self, span: &ExitSpan) {
        self.count = self.count.saturating_add(1);
        self.first_ns = Some(self.first_ns.map_or(span.start_ns, |at| at.min(span.start_ns)));
        self.before_exit_ns = self.before_exit_ns.saturating_add(span.before_exit_ns);
        self.guest_ns = self.guest_ns.saturating_add(span.guest_ns);
        if span.outcome == Outcome::Paired {
            self.paired = self.paired.saturating_add(1);
            self.time_ns = self.time_ns.saturating_add(span.duration_ns());
            self.parts.add(&span.parts);
            self.longest.add(span.start_ns, span.end_ns);
            self.by_user += u64::from(span.handler == Handler::User);
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.paired = self.paired.saturating_add(other.paired);
        self.time_ns = self.time_ns.saturating_add(other.time_ns);
        self.parts.add(&other.parts);
        self.before_exit_ns = self.before_exit_ns.saturating_add(other.before_exit_ns);
        self.guest_ns = self.guest_ns.saturating_add(other.guest_ns);
        self.by_user = self.by_user.saturating_add(other.by_user);
        self.first_ns = self.first_ns.into_iter().chain(other.first_ns).min();
        self.longest.merge(other.longest);
    }

    pub(crate) fn of_all<'s>(all: impl IntoIterator<Item = &'s Self>) -> Self {
        let mut sums = Self::default();
        all.into_iter().for_each(|other| sums.merge(other));
        sums
    }

    /// Whether user space handled most of them.
    pub(crate) fn is_users(&self) -> bool {
        super::thresholds::is_most(self.by_user, self.paired)
    }

    /// Cost if it is known, otherwise time.
    pub(crate) fn taken_ns(&self, recorded: &RecordedParts) -> u64 {
        if recorded.off_cpu { self.cost_ns() } else { self.time_ns }
    }

    fn cost_ns(&self) -> u64 {
        let on_cpu_ns = self.parts.kernel_ns.saturating_add(self.parts.user_ns);
        on_cpu_ns.saturating_add(self.before_exit_ns)
    }

    /// CPU time of the VMM, at most [`Self::taken_ns`].
    pub(crate) fn user_ns(&self, recorded: &RecordedParts) -> u64 {
        self.parts.user_ns.min(self.taken_ns(recorded))
    }
}

/// Whether [`ExitSums::taken_ns`] is a cost or a time.
pub(crate) const fn kind_of(recorded: &RecordedParts) -> SavingOf {
    if recorded.off_cpu { SavingOf::Cost } else { SavingOf::Time }
}

/// Number of exits, their cost or time, and its share of the VM's time.
pub(crate) fn facts(sums: &ExitSums, recorded: &RecordedParts, running_ns: u64) -> Vec<Fact> {
    let taken_ns = sums.taken_ns(recorded);
    let name = if recorded.off_cpu {
        "cost of these exits"
    } else {
        "time of these exits, waiting included"
    };
    vec![
        Fact::new("exits", Amount::Count(sums.count)),
        Fact::new(name, Amount::Time(taken_ns)),
        share_fact(taken_ns, running_ns),
    ]
}

/// Share of the VM's time.
pub(crate) fn share_fact(part_ns: u64, running_ns: u64) -> Fact {
    let share = part_ns as f64 / running_ns.max(1) as f64;
    Fact::new("share of the vCPUs' time on CPU", Amount::Share(share.min(1.0)))
}
