//! One VM as rules see it: what was measured, and sums over it.

use timeline::Detail;
use timeline::arch::Isa;

use super::evidence::{ExitEvidence, Place, VmEvidence};
use super::sums::{self, ExitSums};
use super::thresholds::{MIN_EXITS, matters};
use super::{About, Advice, Fact, SavingOf};
use crate::cpu::TakenCpu;
use crate::nested::NestedRow;
use crate::recorded::RecordedParts;

/// What was measured of one VM.
#[derive(Debug)]
pub(super) struct Measured<'m> {
    /// Its exits.
    pub(super) evidence: &'m VmEvidence,
    /// Which parts of an exit the recording has events for.
    pub(super) recorded: &'m RecordedParts,
    /// Time that its vCPUs had CPUs: in the guest, and for what exits take. What shares are of.
    pub(super) running_ns: u64,
    /// Exits of guests inside it, the costliest first.
    pub(super) nested: Vec<&'m NestedRow>,
    /// Threads that had the CPUs that its vCPUs waited for, longest first.
    pub(super) takers: Vec<&'m TakenCpu>,
}

impl<'m> Measured<'m> {
    pub(super) fn new(
        evidence: &'m VmEvidence,
        exits: &'m ExitEvidence,
        nested: Vec<&'m NestedRow>,
        takers: Vec<&'m TakenCpu>,
    ) -> Self {
        let recorded = &exits.recorded;
        let all = ExitSums::of_all(evidence.places.iter().map(|place| &place.sums));
        // Where sleeping can't be distinguished from running, what waits by its reason ran for none of it.
        let ran = evidence.places.iter().filter(|place| recorded.off_cpu || !place.waiting);
        let exits_ns = ExitSums::of_all(ran.map(|place| &place.sums)).taken_ns(recorded);
        Self {
            evidence,
            recorded,
            running_ns: all.guest_ns.saturating_add(exits_ns),
            nested,
            takers,
        }
    }

    /// The VM's own exits for which `includes` holds, without those of guests inside it.
    pub(super) fn own_exits(&self, includes: impl Fn(&Place) -> bool) -> Vec<&'m Place> {
        self.evidence.places.iter().filter(|place| place.level == 1 && includes(place)).collect()
    }

    /// Whether exits are many enough, and take enough of the VM's time, to speak of.
    pub(super) fn matters(&self, sums: &ExitSums) -> bool {
        sums.count >= MIN_EXITS && matters(sums.taken_ns(self.recorded), self.running_ns)
    }

    /// How many exits, what they take, and what part of the VM's time that is.
    pub(super) fn facts(&self, sums: &ExitSums) -> Vec<Fact> {
        sums::facts(sums, self.recorded, self.running_ns)
    }

    /// Advice on exits that could save all that they take; `places` has one at least.
    pub(super) fn on(&self, places: &[&Place]) -> Option<Advice> {
        let sums = ExitSums::of_all(places.iter().map(|place| &place.sums));
        let first = places.iter().max_by_key(|place| place.sums.taken_ns(self.recorded))?;
        let about = About::Reason { level: first.level, reason: first.reason.clone() };
        Some(Advice {
            evidence: self.facts(&sums),
            saving_at_most_ns: sums.taken_ns(self.recorded),
            saving_of: sums::kind_of(self.recorded),
            ..self.about(about)
        })
    }

    /// Advice on the VM that says and saves nothing yet.
    pub(super) fn about(&self, about: About) -> Advice {
        Advice {
            rule: "",
            vm: self.evidence.vm.clone(),
            isa: self.evidence.isa.unwrap_or(Isa::Unknown),
            about,
            title: String::new(),
            why: String::new(),
            helps: Vec::new(),
            evidence: Vec::new(),
            saving_at_least_ns: 0,
            saving_at_most_ns: 0,
            saving_of: SavingOf::Cost,
        }
    }
}

impl Place {
    pub(crate) fn msr(&self) -> Option<u64> {
        self.detail.filter(|(detail, _)| *detail == Detail::Msr).map(|(_, value)| value)
    }

    pub(crate) fn port(&self) -> Option<u64> {
        self.detail.filter(|(detail, _)| *detail == Detail::Port).map(|(_, value)| value)
    }

    pub(crate) fn gpa(&self) -> Option<u64> {
        self.detail.filter(|(detail, _)| *detail == Detail::Gpa).map(|(_, value)| value)
    }
}

/// Texts as what helps is kept.
pub(super) fn texts(all: &[&str]) -> Vec<String> {
    all.iter().map(|&text| text.to_owned()).collect()
}
