//! How long did exits take, when: the latencies of every exit over time, small enough to be drawn.

mod grid;

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use sources::Recording;
use timeline::arch::Isa;
use timeline::{ExitSink, ExitSpan, Outcome, each_exit, group_vms};

use crate::reasons::{Code, ReasonNames};

pub use grid::{Heat, HeatCell, HeatKey, LATENCY_ROWS_PER_OCTAVE, latency_row};

/// Which row of the exits report a part of the map belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HeatName {
    /// Number of the recording, in the order in which they were added.
    pub recording: u32,
    /// The VM.
    pub vm: String,
    /// Level of the guest that exited.
    pub level: u8,
    /// Instruction set.
    pub isa: Isa,
    /// The kernel's name of the reason.
    pub reason: String,
    /// Its raw code.
    pub code: Code,
}

/// Latencies of all recordings.
#[derive(Debug, Default)]
pub struct Latencies {
    /// How many exits took how long, when.
    pub heat: Heat,
    names: FxHashMap<HeatKey, HeatName>,
    recording: u32,
}

impl Latencies {
    /// Adds the exits of another recording; `tick` hears of the bytes done.
    #[must_use]
    pub fn with(self, recording: &Recording, tick: &(dyn Fn(u64) + Sync)) -> Self {
        let pass = each_exit(recording, false, self, tick);
        let mut this = pass.sink;
        let mut names = ReasonNames::new(recording);
        let vms = group_vms(recording, &pass.vcpus);
        let vm_of = |index: u32| {
            let here = |vm: &&timeline::Vm| vm.vcpus.iter().any(|one| one.index == index as usize);
            vms.iter().find(here).map_or_else(String::new, |vm| vm.name.clone())
        };
        let number = this.recording;
        for key in this.heat.keys().filter(|key| key.recording == number) {
            let isa = names.isa(key.isa);
            let name = HeatName {
                recording: number,
                vm: vm_of(key.vcpu),
                level: key.level,
                isa,
                reason: names.name(key.isa, key.code),
                code: Code::new(isa, key.code),
            };
            this.names.insert(*key, name);
        }
        this.recording += 1;
        this
    }

    /// The cells of the map by row of the exits report.
    #[must_use]
    pub fn by_row(&self) -> BTreeMap<HeatName, Vec<HeatCell>> {
        let mut groups = self.heat.grouped(|key| self.names.get(key).cloned());
        let mut named = BTreeMap::new();
        while let Some((name, cells)) = groups.pop_first() {
            if let Some(name) = name {
                named.insert(name, cells);
            }
        }
        named
    }
}

impl ExitSink for Latencies {
    fn exit(&mut self, vcpu: usize, span: &ExitSpan) {
        if span.outcome == Outcome::Paired {
            let key = HeatKey {
                recording: self.recording,
                vcpu: u32::try_from(vcpu).unwrap_or(u32::MAX),
                level: span.level,
                isa: span.isa,
                code: span.code,
            };
            self.heat.add(key, span.start_ns, span.duration_ns());
        }
    }
}
