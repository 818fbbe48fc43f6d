//! The evidence for the code of a line; combined lines have several kinds.

use analyses::profile::Evidence;

/// All kinds, in the order of their names.
const ALL: [Evidence; 4] = [Evidence::Agent, Evidence::Exits, Evidence::Host, Evidence::None];

/// Kinds of evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EvidenceSet(u8);

impl EvidenceSet {
    const fn bit(evidence: Evidence) -> u8 {
        1 << evidence as u8
    }

    pub(super) const fn has(self, kind: Evidence) -> bool {
        self.0 & Self::bit(kind) != 0
    }

    pub(super) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether samples are part of the evidence, not only events.
    pub(super) fn has_samples(self) -> bool {
        ALL.iter().any(|&kind| kind != Evidence::None && self.has(kind))
    }

    /// Their names: `agent+host`.
    pub(super) fn name(self) -> String {
        let kinds = ALL.iter().filter(|&&kind| self.has(kind));
        kinds.map(|kind| kind.name()).collect::<Vec<_>>().join("+")
    }
}

impl From<Evidence> for EvidenceSet {
    fn from(kind: Evidence) -> Self {
        Self(Self::bit(kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_named_in_one_order() {
        let set = EvidenceSet::from(Evidence::Host).with(Evidence::Agent.into());
        assert_eq!(set.name(), "agent+host");
        assert!(set.has_samples() && !EvidenceSet::from(Evidence::None).has_samples());
    }
}
