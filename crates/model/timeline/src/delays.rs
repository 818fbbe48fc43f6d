//! What was counted in slices of time in which exits of one reason were made longer: made by the recorder's side, read
//! by the analysis of sensitivity.

/// What BPF programs counted while they delayed exits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DelayCounts {
    /// Units of the workload's progress.
    pub progress: u64,
    /// Exits of other threads, which are never delayed.
    pub foreign: u64,
    /// By reason.
    pub by_reason: Vec<ReasonCounts>,
}

/// Their counts for exits of one reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReasonCounts {
    /// Exits delayed.
    pub delayed: u64,
    /// Nanoseconds until they, and those without a delay, could go on.
    pub delay_ns: u64,
    /// Exits that were seen to end.
    pub handled: u64,
    /// Nanoseconds that these took besides `delay_ns`.
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
    /// What was counted since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let pairs = self.by_reason.iter().zip(&before.by_reason);
        Self {
            progress: self.progress.saturating_sub(before.progress),
            foreign: self.foreign.saturating_sub(before.foreign),
            by_reason: pairs.map(|(now, before)| now.since(*before)).collect(),
        }
    }

    /// The counts for exits of the reason at this index; zeros for a reason that was not counted.
    #[must_use]
    pub fn of_reason(&self, reason: usize) -> ReasonCounts {
        self.by_reason.get(reason).copied().unwrap_or_default()
    }
}

/// A slice of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelaySlice {
    /// The reason, by its place, and the delay asked for; `None`: no exits were delayed.
    pub delay_ns: Option<(usize, u64)>,
    /// How long it was.
    pub duration_ns: u64,
    /// What was counted in it.
    pub counts: DelayCounts,
}
