//! A guest's boot from its own recording, with the weights of its events between all starts and ends of phases and
//! initcalls.

use sources::Recording;

use super::events::{self, Weight};
use super::sums::{Add, Sums};
use super::{BootMarks, BootedMachine, Initcall, follow};

/// The machine of a recording; `None` if the recording has no boot or shutdown.
pub(super) fn machine(
    recording: &Recording,
    marks: &BootMarks,
    progress: &(dyn Fn(u64) + Sync),
) -> Option<BootedMachine> {
    let events = events::read(recording, progress);
    let mut machine = follow::follow(recording, &events, marks);
    if !machine.is_known() {
        return None;
    }
    let edges = edges(&machine);
    let weights = events::weigh(recording, &edges, events.buffer, progress);
    let sums = Sums::new(weights.phases);
    let sum = |from_ns: u64, to_ns: u64| sums.sum_over(segments(&edges, from_ns, to_ns));
    let last = machine.phases.len().saturating_sub(1);
    for (at, phase) in machine.phases.iter_mut().enumerate() {
        // The last event belongs to the last phase.
        let to_ns = if at == last { u64::MAX } else { phase.to_ns };
        let weight = sum(phase.from_ns, to_ns);
        if let Some(guest) = &mut phase.guest {
            guest.weight = weight;
        }
    }
    for initcall in measured_mut(&mut machine) {
        initcall.weight = initcall.to_ns.map(|to_ns| sum(initcall.from_ns, to_ns));
    }
    machine.damaged = weights.damaged;
    Some(machine)
}

/// Max initcalls with weights: outermost ones, as many as a kernel has. In a damaged recording, all of them can
/// overlap.
const MAX_MEASURED: usize = 4096;

pub(super) fn measured_mut(machine: &mut BootedMachine) -> impl Iterator<Item = &mut Initcall> {
    machine.initcalls.iter_mut().filter(|initcall| initcall.depth == 0).take(MAX_MEASURED)
}

/// All starts and ends of phases and initcalls, ascending.
pub(super) fn edges(machine: &BootedMachine) -> Vec<u64> {
    let phases = machine.phases.iter().flat_map(|phase| [phase.from_ns, phase.to_ns]);
    let outer = machine.initcalls.iter().filter(|initcall| initcall.depth == 0);
    let initcalls = outer
        .take(MAX_MEASURED)
        .flat_map(|initcall| [Some(initcall.from_ns), initcall.to_ns])
        .flatten();
    let mut edges: Vec<u64> = phases.chain(initcalls).collect();
    edges.sort_unstable();
    edges.dedup();
    edges
}

/// Indexes of the segments between two edges: segment 0 is before the first edge, segment 1 begins there.
pub(super) fn segments(edges: &[u64], from_ns: u64, to_ns: u64) -> std::ops::Range<usize> {
    let at = |ns: u64| edges.partition_point(|&edge| edge < ns);
    at(from_ns) + 1..at(to_ns) + 1
}

impl Add for Weight {
    fn add(&mut self, other: &Self) {
        self.events += other.events;
        self.bytes += other.bytes;
        self.losses += other.losses;
        self.lost = self.lost.saturating_add(other.lost);
    }
}
