//! Rules whose predicted savings were verified by a measurement with the changed setting.

/// Result of verifying a rule with `hyperscope bench advice` in the lab; see `docs/advice.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified {
    pub rule: &'static str,
    /// Measured savings within the predicted interval.
    pub held: usize,
    /// Number of predictions that were measured.
    pub predictions: usize,
}

/// Results by rule. Other rules need settings that the lab cannot change.
pub static VERIFIED: [Verified; 6] = [
    Verified { rule: "interrupt-controller", held: 3, predictions: 3 },
    Verified { rule: "device-address", held: 9, predictions: 9 },
    Verified { rule: "legacy-port", held: 6, predictions: 6 },
    Verified { rule: "memory-faults", held: 6, predictions: 6 },
    Verified { rule: "preempted-vcpus", held: 3, predictions: 4 },
    Verified { rule: "halt-polling", held: 3, predictions: 3 },
];

/// The result for a rule; `None` if it was not verified.
#[must_use]
pub fn verified(rule: &str) -> Option<Verified> {
    VERIFIED.iter().find(|entry| entry.rule == rule).copied()
}
