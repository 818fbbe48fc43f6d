//! Sums of a VM.

use std::collections::BTreeMap;

use crate::{ACTIVITIES, Histogram, Row, States, Sums, Vcpu};

use crate::metrics::text::HISTOGRAM_SERIES;

/// Parts of exits, in the order of [`Exits::parts_ns`].
pub(crate) const PARTS: [&str; 6] =
    ["kernel", "user", "runnable", "blocked", "halt_poll", "before_exit"];
/// Handlers of exits, in the order of [`Sums::handled`].
pub(crate) const HANDLED: [&str; 3] = ["kernel", "user", "l1"];
/// Series per exit reason: count and parts.
pub(crate) const REASON_SERIES: usize = 1 + PARTS.len();
/// Series of each VM, including those of exits beyond the max number of reasons.
pub(crate) const VM_SERIES: usize =
    2 + ACTIVITIES.len() + 3 * HISTOGRAM_SERIES + HANDLED.len() + REASON_SERIES;

/// An exit reason, and its level.
pub(crate) type Reason = (u8, String);

/// Totals of a VM since it was first seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Vm {
    /// Number of vCPUs at the end of the latest interval.
    pub(crate) vcpus: u64,
    /// States of its vCPUs.
    pub(crate) states: States,
    /// Run-queue waits of its vCPUs.
    pub(crate) waits: Times,
    /// Times of exits: non-waiting, and waiting.
    pub(crate) durations: [Times; 2],
    /// Exits by handler.
    pub(crate) handled: [u64; 3],
    pub(crate) reasons: BTreeMap<Reason, Exits>,
    /// Exits beyond the max number of reasons.
    pub(crate) other: Exits,
    /// End of the latest interval in which it ran.
    pub(crate) seen_ns: u64,
}

/// Exits of a reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Exits {
    pub(crate) count: u64,
    pub(crate) parts_ns: [u64; PARTS.len()],
}

/// Times, counted in buckets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times {
    pub(crate) histogram: Histogram,
    pub(crate) sum_ns: u64,
}

impl Times {
    fn add(&mut self, sums: &Sums) {
        self.histogram.add(&sums.times);
        self.sum_ns = self.sum_ns.saturating_add(sums.time_ns);
    }
}

impl Exits {
    pub(crate) fn add(&mut self, sums: &Sums) {
        self.count = self.count.saturating_add(sums.count);
        let parts = &sums.parts;
        let more = [
            parts.kernel_ns,
            parts.user_ns,
            parts.runnable_ns,
            parts.blocked_ns,
            parts.halt_poll_ns,
            sums.before_exit_ns,
        ];
        for (to, more) in self.parts_ns.iter_mut().zip(more) {
            *to = to.saturating_add(more);
        }
    }
}

impl Vm {
    /// Number of its series.
    pub(crate) fn series(&self) -> usize {
        VM_SERIES + self.reasons.len() * REASON_SERIES
    }

    /// Adds a vCPU's interval.
    pub(crate) fn add_vcpu(&mut self, vcpu: &Vcpu) {
        self.vcpus += u64::from(!vcpu.gone);
        self.states.add(&vcpu.states);
        self.waits.add(&vcpu.waits);
    }

    /// Adds exits, except for the series of their reason.
    pub(crate) fn add_exits(&mut self, row: &Row) {
        let [busy, waiting] = &mut self.durations;
        if row.waiting { waiting } else { busy }.add(&row.sums);
        for (to, more) in self.handled.iter_mut().zip(row.sums.handled) {
            *to = to.saturating_add(more);
        }
    }

    /// Number of all exits.
    pub(crate) fn exits(&self) -> u64 {
        let reasons = self.reasons.values().map(|exits| exits.count);
        reasons.fold(self.other.count, u64::saturating_add)
    }
}
