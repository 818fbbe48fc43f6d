//! Sums over an interval: where each vCPU's time went, and by which exits.

use std::collections::BTreeMap;

use shmring::spans::{Activity, By, Span};

use crate::absences::Absence;
use crate::exits::{ExitKey, Exits, place};

/// Where the time of one vCPU went. All but `running` add up with it to the interval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VcpuShares {
    /// The vCPU's number.
    pub vcpu: u32,
    /// The interval, on the guest's TSC; both are the same where the host published nothing of it.
    pub from_tsc: u64,
    /// Its end.
    pub to_tsc: u64,
    /// Ticks by what the vCPU's thread did while it was not in the guest.
    pub away: Exits,
    /// Of the time it was preempted, by who ran in its place: in the order of [`By::ALL`].
    pub preempted_by: [u64; By::ALL.len()],
    /// By level, `isa` and code of the exit.
    pub exits: BTreeMap<ExitKey, Exits>,
    /// Events that the host lost: the time is in [`Activity::Unknown`].
    pub lost_events: u64,
    /// Spans that were overwritten before they were read: the time is there, too.
    pub missed: u64,
    /// Slots that held what no host writes: as well.
    pub damage: u64,
}

impl VcpuShares {
    /// Ticks that the interval has.
    #[must_use]
    pub fn ticks(&self) -> u64 {
        self.to_tsc.saturating_sub(self.from_tsc)
    }

    /// Ticks that the vCPU ran its guest.
    #[must_use]
    pub fn running(&self) -> u64 {
        self.ticks().saturating_sub(self.away.total())
    }

    /// Ticks that it wanted to run and did not.
    #[must_use]
    pub fn stolen(&self) -> u64 {
        Activity::ALL
            .into_iter()
            .filter(|activity| activity.is_stolen())
            .map(|activity| self.away.ticks_of(activity))
            .sum()
    }

    /// Adds a span, which lies within the interval.
    pub(crate) fn add(&mut self, span: &Span) {
        add(&mut self.away, span, span.begins_exit);
        if span.activity == Activity::Preempted {
            let place = self.preempted_by.get_mut(span.by as usize);
            place.into_iter().for_each(|ticks| *ticks = ticks.saturating_add(span.ticks));
        }
        if let Some(code) = span.code {
            let exits = self.exits.entry((span.level, span.isa, code)).or_default();
            add(exits, span, span.begins_exit);
        }
    }
}

fn add(exits: &mut Exits, span: &Span, begins: bool) {
    exits.count += u64::from(begins);
    if let Some(ticks) = place(span.activity).and_then(|at| exits.ticks.get_mut(at)) {
        *ticks = ticks.saturating_add(span.ticks);
    }
}

/// All vCPUs over one interval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// By vCPU.
    pub vcpus: Vec<VcpuShares>,
    /// The longest absences that ended in it, the longest first.
    pub longest: Vec<Absence>,
}
