//! Which rules' savings were verified: predicted, and then measured with the thing switched.

/// What came of it: `hyperscope bench advice` in the lab, as `docs/advice.md` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified {
    pub rule: &'static str,
    /// Savings that were in the predicted interval.
    pub held: usize,
    /// All that were predicted and measured.
    pub predictions: usize,
}

/// Rules that are not here have things to switch that the lab can't.
pub static VERIFIED: [Verified; 6] = [
    Verified { rule: "interrupt-controller", held: 3, predictions: 3 },
    Verified { rule: "device-address", held: 9, predictions: 9 },
    Verified { rule: "legacy-port", held: 6, predictions: 6 },
    Verified { rule: "memory-faults", held: 6, predictions: 6 },
    Verified { rule: "preempted-vcpus", held: 3, predictions: 4 },
    Verified { rule: "halt-polling", held: 3, predictions: 3 },
];

/// What came of verifying a rule; none where it was not tried.
#[must_use]
pub fn verified(rule: &str) -> Option<Verified> {
    VERIFIED.iter().find(|entry| entry.rule == rule).copied()
}
