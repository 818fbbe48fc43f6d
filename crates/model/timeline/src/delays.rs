//! Counts from time slices in which exits of one reason were delayed: the recorder creates them,
//! the sensitivity analysis reads them.

/// Counts of the BPF programs while they delayed exits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DelayCounts {
    /// Progress of the workload, in its units.
    pub progress: u64,
    /// Exits of other threads, which are not delayed.
    pub foreign: u64,
    /// By reason.
    pub by_reason: Vec<ReasonCounts>,
}

/// Counts for exits of one reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReasonCounts {
    /// Delayed exits.
    pub delayed: u64,
    /// Total time of the delay, including exits with a delay of zero.
    pub delay_ns: u64,
    /// Exits whose end was seen.
    pub handled: u64,
    /// Time of these exits without `delay_ns`.
    pub handled_ns: u64,
}

impl ReasonCounts {
    fn since(self, before: Self) -> Self {
        Self {
            delayed: self.delayed.saturating_sub(before.delayed),
            delay_ns: self.delay_ns.saturating_sub(before.delay_ns),
            handled: self.handled.saturating_sub(before.handled),
            handled_ns: self.handled_ns.saturating_sub(before.handled_ns),
        }
    }
}

impl DelayCounts {
    /// Counts since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let pairs = self.by_reason.iter().zip(&before.by_reason);
        Self {
            progress: self.progress.saturating_sub(before.progress),
            foreign: self.foreign.saturating_sub(before.foreign),
            by_reason: pairs.map(|(now, before)| now.since(*before)).collect(),
        }
    }

    /// The counts for exits of the reason at this index; zeros if the reason was not counted.
    #[must_use]
    pub fn of_reason(&self, reason: usize) -> ReasonCounts {
        self.by_reason.get(reason).copied().unwrap_or_default()
    }
}

/// A time slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelaySlice {
    /// Index of the reason, and the requested delay; `None` if no exits were delayed.
    pub delay_ns: Option<(usize, u64)>,
    /// Duration of the slice.
    pub duration_ns: u64,
    /// Counts in the slice.
    pub counts: DelayCounts,
}
