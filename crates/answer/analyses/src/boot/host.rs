//! Host cost of phases and initcalls: exits of the machines' vCPUs by start time. One pass covers all machines of
//! a host.

use rustc_hash::{FxHashMap, FxHashSet};
use sources::Recording;
use timeline::reasons::ReasonNames;
use timeline::{ExitPass, ExitSink, ExitSpan, Losses, Vm, each_exit, group_vms};

use super::guest_events::GuestReports;
use super::sums::{Add, Sums};
use super::tally::Tally;
use super::{BootMarks, BootedMachine, HostCost, Phase, PhaseKind, edges, measured_mut, segments};
use crate::recorded::RecordedParts;

/// Max distinct exit codes: a kernel has about a hundred, a damaged recording can have any number.
const MAX_CODES: usize = 1024;
/// The code for all others.
const OTHER: u64 = u64::MAX;

/// Results for a host.
pub(super) struct HostBoots {
    /// Machines without a recording of their own.
    pub(super) others: Vec<BootedMachine>,
    /// Losses of the host's recording; `None` if it has no machines.
    pub(super) losses: Option<Losses>,
}

/// Adds exits to machines with a recording of their own, and the phases that only the host sees. Finds the other
/// machines by their reports, if any were recorded.
pub(super) fn add(
    host: &Recording,
    mut hosted_machines: Vec<&mut BootedMachine>,
    reports: Option<&GuestReports>,
    marks: &BootMarks,
    progress: &(dyn Fn(u64) + Sync),
) -> HostBoots {
    let reported = reports.into_iter().flat_map(GuestReports::times);
    let mut cuts: Vec<u64> =
        hosted_machines.iter().flat_map(|machine| edges(machine)).chain(reported).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let mut pass = each_exit(host, false, SegmentExits::new(&cuts), progress);
    let has_exits = !pass.vcpus.is_empty();
    if !has_exits {
        pass.vcpus = reports.map(GuestReports::vcpus).unwrap_or_default();
    }
    let vms = group_vms(host, &pass.vcpus);
    let named: FxHashSet<&str> =
        hosted_machines.iter().filter_map(|machine| machine.vm.as_deref()).collect();
    let nameless = vms.iter().filter(|vm| !named.contains(vm.name.as_str()));
    let reporting = reports.map(|reports| {
        let machine = |vm| reports.machine(vm, marks, host.is_nanoseconds());
        nameless.map(machine).collect::<Vec<_>>()
    });
    let mut others = reporting.unwrap_or_default();
    let is_host = !hosted_machines.is_empty() || !vms.is_empty();
    let by_name = by_name(&vms);
    if has_exits {
        let mut exits = Exits::new(host, &pass);
        for machine in hosted_machines.iter_mut().map(|machine| &mut **machine).chain(&mut others) {
            let vm = machine.vm.as_deref().and_then(|name| by_name.get(name).copied());
            vm.into_iter().for_each(|vm| exits.add(machine, vm));
        }
    } else {
        for other in &mut others {
            let vm = other.vm.as_deref().and_then(|name| by_name.get(name));
            other.vcpus = vm.map_or(0, |vm| vm.vcpus.len());
        }
    }
    HostBoots { others, losses: is_host.then_some(pass.losses) }
}

/// The first VM with each name.
fn by_name(vms: &[Vm]) -> FxHashMap<&str, &Vm> {
    vms.iter().rev().map(|vm| (vm.name.as_str(), vm)).collect()
}

/// All exits of a host.
struct Exits<'p> {
    pass: &'p ExitPass<SegmentExits<'p>>,
    /// By vCPU: segments between cuts, with their exits.
    by_vcpu: FxHashMap<usize, Vec<(usize, &'p Tally)>>,
    names: ReasonNames,
    recorded: RecordedParts,
}

impl<'p> Exits<'p> {
    fn new(host: &Recording, pass: &'p ExitPass<SegmentExits<'p>>) -> Self {
        let mut by_vcpu: FxHashMap<usize, Vec<_>> = FxHashMap::default();
        for ((vcpu, segment), tally) in &pass.sink.tallies {
            by_vcpu.entry(*vcpu).or_default().push((*segment, tally));
        }
        let (names, recorded) = (ReasonNames::new(host), RecordedParts::new(host, pass.seen));
        Self { pass, by_vcpu, names, recorded }
    }

    /// Exits of a VM between the edges of its machine, which are a subset of the cuts.
    fn between(&self, edges: &[u64], vm: &Vm) -> Sums<Tally> {
        let mut tallies = vec![Tally::default(); edges.len() + 1];
        let all = vm.vcpus.iter().filter_map(|vcpu| self.by_vcpu.get(&vcpu.index)).flatten();
        for (segment, tally) in all {
            // Segment 0 is before the first cut, segment 1 begins there.
            let cut_ns = segment.checked_sub(1).and_then(|at| self.pass.sink.cuts.get(at));
            let slot = cut_ns.map_or(0, |cut_ns| edges.partition_point(|edge| edge <= cut_ns));
            if let Some(sum) = tallies.get_mut(slot) {
                sum.add(tally);
            }
        }
        Sums::new(tallies)
    }

    fn add(&mut self, machine: &mut BootedMachine, vm: &Vm) {
        let edges = edges(machine);
        let sums = self.between(&edges, vm);
        let mut cost = |places: std::ops::Range<usize>| {
            sums.sum_over(places).named(&mut self.names, &self.recorded)
        };
        let all = cost(0..edges.len() + 1);
        machine.vcpus = vm.vcpus.len();
        machine.exits = Some(all.exits);
        for initcall in measured_mut(machine) {
            let to_ns = initcall.to_ns;
            initcall.host = to_ns.map(|to_ns| cost(segments(&edges, initcall.from_ns, to_ns)));
        }
        for phase in &mut machine.phases {
            phase.host = Some(cost(segments(&edges, phase.from_ns, phase.to_ns)));
        }
        let ends = [cost(0..1), cost(edges.len()..edges.len() + 1)];
        add_outer(machine, self.ran(vm), all, ends);
    }

    /// First and last time at which the host saw the VM.
    fn ran(&self, vm: &Vm) -> Option<(u64, u64)> {
        let infos = vm.vcpus.iter().filter_map(|vcpu| self.pass.vcpus.get(vcpu.index));
        let lasts = vm.vcpus.iter().filter_map(|vcpu| self.pass.sink.last_ns.get(vcpu.index));
        infos.map(|info| info.first_ns).min().zip(lasts.max().copied())
    }
}

/// Adds the phases that only the host sees: the whole time, or the time before and after the other phases.
fn add_outer(
    machine: &mut BootedMachine,
    ran: Option<(u64, u64)>,
    all: HostCost,
    [before, after]: [HostCost; 2],
) {
    let Some((first_ns, last_ns)) = ran else { return };
    let outer = |kind, name: &str, from_ns, to_ns, host| Phase {
        kind,
        name: name.to_owned(),
        from_ns,
        to_ns,
        guest: None,
        host: Some(host),
    };
    let (Some(begin), Some(end)) = (machine.phases.first(), machine.phases.last()) else {
        machine.phases.push(outer(PhaseKind::Running, "recorded", first_ns, last_ns, all));
        return;
    };
    let (begin_ns, end_ns) = (begin.from_ns, end.to_ns);
    if first_ns < begin_ns {
        let before = outer(PhaseKind::Before, "before tracing", first_ns, begin_ns, before);
        machine.phases.insert(0, before);
    }
    if last_ns > end_ns {
        machine.phases.push(outer(PhaseKind::After, "after tracing", end_ns, last_ns, after));
    }
}

/// Sums exits by vCPU and segment.
struct SegmentExits<'e> {
    /// Boundaries of segments.
    cuts: &'e [u64],
    tallies: FxHashMap<(usize, usize), Tally>,
    /// Distinct instruction sets and codes, up to [`MAX_CODES`].
    codes: FxHashSet<(u8, u64)>,
    /// By vCPU.
    last_ns: Vec<u64>,
}

impl<'e> SegmentExits<'e> {
    fn new(cuts: &'e [u64]) -> Self {
        let (tallies, codes) = (FxHashMap::default(), FxHashSet::default());
        Self { cuts, tallies, codes, last_ns: Vec::new() }
    }

    fn code(&mut self, span: &ExitSpan) -> (u8, u64) {
        let code = (span.isa, span.code);
        if self.codes.contains(&code) {
            return code;
        }
        if self.codes.len() >= MAX_CODES {
            return (span.isa, OTHER);
        }
        self.codes.insert(code);
        code
    }
}

impl ExitSink for SegmentExits<'_> {
    fn exit(&mut self, vcpu: usize, span: &ExitSpan) {
        if self.last_ns.len() <= vcpu {
            self.last_ns.resize(vcpu + 1, 0);
        }
        if let Some(last_ns) = self.last_ns.get_mut(vcpu) {
            *last_ns = span.end_ns.max(*last_ns);
        }
        let segment = self.cuts.partition_point(|&cut| cut <= span.start_ns);
        let code = self.code(span);
        self.tallies.entry((vcpu, segment)).or_default().exit(span, code);
    }
}
