//! The view of rules on one VM: measurements and sums.

use timeline::Detail;
use timeline::arch::Isa;

use super::evidence::{ExitEvidence, Place, VmEvidence};
use super::sums::{self, ExitSums};
use super::thresholds::{MIN_EXITS, matters};
use super::{About, Advice, Fact, SavingOf};
use crate::cpu::TakenCpu;
use crate::nested::NestedRow;
use crate::recorded::RecordedParts;

/// Measurements of one VM.
#[derive(Debug)]
pub(super) struct Measured<'m> {
    /// Its exits.
    pub(super) evidence: &'m VmEvidence,
    /// Parts of an exit that the recording has events for.
    pub(super) recorded: &'m RecordedParts,
    /// CPU time of its vCPUs: time in the guest and cost of exits. Shares refer to this time.
    pub(super) running_ns: u64,
    /// Exits of nested guests, the costliest first.
    pub(super) nested: Vec<&'m NestedRow>,
    /// Threads on the CPUs that its vCPUs waited for, the longest time first.
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
        // If sleeping is not separate from running, waiting exits count as not running.
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

    /// The VM's own exits for which `includes` holds, without nested guests' exits.
    pub(super) fn own_exits(&self, includes: impl Fn(&Place) -> bool) -> Vec<&'m Place> {
        self.evidence.places.iter().filter(|place| place.level == 1 && includes(place)).collect()
    }

    /// Whether exits are frequent enough and take a large enough share of the VM's time.
    pub(super) fn matters(&self, sums: &ExitSums) -> bool {
        sums.count >= MIN_EXITS && matters(sums.taken_ns(self.recorded), self.running_ns)
    }

    /// Number of exits, their cost or time, and its share of the VM's time.
    pub(super) fn facts(&self, sums: &ExitSums) -> Vec<Fact> {
        sums::facts(sums, self.recorded, self.running_ns)
    }

    /// Advice to avoid all exits at `places`; `None` if there are none.
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

    /// An empty advice for the VM.
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

/// Converts the texts of [`Advice::helps`].
pub(super) fn texts(all: &[&str]) -> Vec<String> {
    all.iter().map(|&text| text.to_owned()).collect()
}
