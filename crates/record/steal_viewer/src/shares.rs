//! Sums over an interval: each vCPU's time by activity and by exit.

use std::collections::BTreeMap;

use shmring::spans::{Activity, By, Span};

use crate::absences::Absence;
use crate::exits::{ExitKey, Exits, place};

/// A vCPU's time by activity. Together with `running` it adds up to the interval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VcpuShares {
    /// The vCPU's number.
    pub vcpu: u32,
    /// The interval's begin, on the guest's TSC; equal to the end if the host published nothing.
    pub from_tsc: u64,
    /// Its end.
    pub to_tsc: u64,
    /// Ticks outside the guest, by activity.
    pub away: Exits,
    /// Preempted ticks, by what ran instead: in the order of [`By::ALL`].
    pub preempted_by: [u64; By::ALL.len()],
    /// By level, `isa` and code of the exit.
    pub exits: BTreeMap<ExitKey, Exits>,
    /// Number of events that the host lost: their time is in [`Activity::Unknown`].
    pub lost_events: u64,
    /// Number of spans that were overwritten before they were read: their time is unknown as well.
    pub missed: u64,
    /// Number of invalid slots: their time is unknown as well.
    pub damage: u64,
}

impl VcpuShares {
    /// Length of the interval in ticks.
    #[must_use]
    pub fn ticks(&self) -> u64 {
        self.to_tsc.saturating_sub(self.from_tsc)
    }

    /// Ticks in the guest.
    #[must_use]
    pub fn running(&self) -> u64 {
        self.ticks().saturating_sub(self.away.total())
    }

    /// Ticks of steal.
    #[must_use]
    pub fn stolen(&self) -> u64 {
        Activity::ALL
            .into_iter()
            .filter(|activity| activity.is_stolen())
            .map(|activity| self.away.ticks_of(activity))
            .sum()
    }

    /// Adds a span inside the interval.
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
    /// The longest absences that ended in the interval, longest first.
    pub longest: Vec<Absence>,
}
