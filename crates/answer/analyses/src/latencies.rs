//! Latencies of all exits over time, as a heat map small enough to draw.

mod grid;

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use sources::Recording;
use timeline::arch::Isa;
use timeline::reasons::{Code, ReasonNames};
use timeline::{ExitSink, ExitSpan, Outcome};

use crate::exit_question::{ExitQuestion, FoundExits};
use crate::vms::VmsByVcpu;

pub use grid::{Heat, HeatCell, HeatKey, LATENCY_ROWS_PER_OCTAVE, latency_row};

/// A row of the exits report, to which cells of the map belong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HeatName {
    /// Number of the recording in the order of addition.
    pub recording: u32,
    pub vm: String,
    /// Level of the guest that exited.
    pub level: u8,
    pub isa: Isa,
    /// The kernel's name of the reason.
    pub reason: String,
    /// Its raw code.
    pub code: Code,
}

#[derive(Debug, Default)]
pub struct Latencies {
    /// Number of exits by time and latency.
    pub heat: Heat,
    names: FxHashMap<HeatKey, HeatName>,
}

/// Latencies over time of every exit in the recording with this number.
#[derive(Clone, Copy, Debug)]
pub struct LatenciesOf(pub u32);

impl ExitQuestion for LatenciesOf {
    type Sink = LatencySink;
    type Answer = Latencies;

    fn needs_details(&self, _: &Recording) -> bool {
        false
    }

    fn sink(&self) -> LatencySink {
        LatencySink { heat: Heat::default(), recording: self.0 }
    }

    fn answer(&self, found: &FoundExits<'_>, sink: LatencySink) -> Latencies {
        let mut names = ReasonNames::new(found.recording);
        let homes = VmsByVcpu::new(&found.vms);
        let vm_of = |index: u32| {
            homes.find(index as usize).map_or_else(String::new, |(vm, _)| vm.name.clone())
        };
        let mut named = FxHashMap::default();
        for key in sink.heat.keys() {
            let isa = names.isa(key.isa);
            let name = HeatName {
                recording: key.recording,
                vm: vm_of(key.vcpu),
                level: key.level,
                isa,
                reason: names.name(key.isa, key.code),
                code: Code::new(isa, key.code),
            };
            named.insert(*key, name);
        }
        Latencies { heat: sink.heat, names: named }
    }
}

impl Latencies {
    /// Adds another recording's latencies.
    pub fn merge(&mut self, other: Self) {
        self.heat.merge(other.heat);
        self.names.extend(other.names);
    }

    /// Cells of the map by row of the exits report.
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

/// Adds a recording's exits to its heat map.
#[derive(Debug)]
pub struct LatencySink {
    heat: Heat,
    recording: u32,
}

impl ExitSink for LatencySink {
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
