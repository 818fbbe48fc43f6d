//! What a machine's phases and initcalls cost its host: exits of its vCPUs by when they begin.

use rustc_hash::FxHashMap;
use sources::Recording;
use timeline::{ExitSink, ExitSpan, Losses, Outcome, each_exit, group_vms};

use super::{BootedMachine, Phase, PhaseKind, Tally, edges, measured_mut, segments};
use crate::Recorded;
use crate::reasons::ReasonNames;

/// Adds exits, and the phases that the host alone knows of; what its recording lost.
pub(super) fn add(
    machine: &mut BootedMachine,
    host: &Recording,
    tick: &(dyn Fn(u64) + Sync),
) -> Losses {
    let edges = edges(machine);
    let pass = each_exit(host, false, Gather::new(&edges), tick);
    let vms = group_vms(host, &pass.vcpus);
    let vm = vms.iter().find(|vm| Some(vm.name.as_str()) == machine.vm.as_deref());
    let Some(vm) = vm else { return pass.losses };
    let is_own = |vcpu: usize| vm.vcpus.iter().any(|one| one.index == vcpu);
    let infos = vm.vcpus.iter().filter_map(|one| pass.vcpus.get(one.index));
    let first_ns = infos.map(|info| info.first_ns).min();
    let gather = pass.sink;
    let last = gather.last_ns.iter().enumerate().filter(|(vcpu, _)| is_own(*vcpu));
    let last_ns = last.map(|(_, ns)| *ns).max();
    let mut tallies = vec![Tally::default(); edges.len() + 1];
    for ((vcpu, segment), tally) in &gather.tallies {
        if let Some(sum) = tallies.get_mut(*segment).filter(|_| is_own(*vcpu)) {
            sum.merge(tally);
        }
    }
    let (mut names, recorded) = (ReasonNames::new(host), Recorded::new(pass.seen));
    let mut cost = |segments: std::ops::Range<usize>| {
        let mut sum = Tally::default();
        tallies.iter().take(segments.end).skip(segments.start).for_each(|one| sum.merge(one));
        sum.named(&mut names, &recorded)
    };
    machine.vcpus = vm.vcpus.len();
    machine.exits = Some(cost(0..usize::MAX).exits);
    for initcall in measured_mut(machine) {
        let to_ns = initcall.to_ns;
        initcall.host = to_ns.map(|to_ns| cost(segments(&edges, initcall.from_ns, to_ns)));
    }
    for phase in &mut machine.phases {
        phase.host = Some(cost(segments(&edges, phase.from_ns, phase.to_ns)));
    }
    let outer = |kind, name: &str, from_ns, to_ns, host| Phase {
        kind,
        name: name.to_owned(),
        from_ns,
        to_ns,
        guest: None,
        host: Some(host),
    };
    if let Some((from_ns, to_ns)) = first_ns.zip(last_ns).filter(|_| machine.phases.is_empty()) {
        let all = cost(0..usize::MAX);
        machine.phases.push(outer(PhaseKind::Running, "recorded", from_ns, to_ns, all));
    }
    let begin = machine.phases.first().map(|phase| phase.from_ns);
    if let Some((from_ns, to_ns)) = first_ns.zip(begin).filter(|(first, begin)| first < begin) {
        let before = outer(PhaseKind::Before, "before tracing", from_ns, to_ns, cost(0..1));
        machine.phases.insert(0, before);
    }
    let end = machine.phases.last().map(|phase| phase.to_ns);
    if let Some((to_ns, from_ns)) = last_ns.zip(end).filter(|(last, end)| last > end) {
        let rest = cost(edges.len()..edges.len() + 1);
        machine.phases.push(outer(PhaseKind::After, "after tracing", from_ns, to_ns, rest));
    }
    pass.losses
}

/// Adds exits up by vCPU and segment.
struct Gather<'e> {
    edges: &'e [u64],
    tallies: FxHashMap<(usize, usize), Tally>,
    /// By vCPU.
    last_ns: Vec<u64>,
}

impl<'e> Gather<'e> {
    fn new(edges: &'e [u64]) -> Self {
        Self { edges, tallies: FxHashMap::default(), last_ns: Vec::new() }
    }
}

impl ExitSink for Gather<'_> {
    fn exit(&mut self, vcpu: usize, span: &ExitSpan) {
        if self.last_ns.len() <= vcpu {
            self.last_ns.resize(vcpu + 1, 0);
        }
        if let Some(last_ns) = self.last_ns.get_mut(vcpu) {
            *last_ns = span.end_ns.max(*last_ns);
        }
        let segment = self.edges.partition_point(|&edge| edge <= span.start_ns);
        let tally = self.tallies.entry((vcpu, segment)).or_default();
        let code = tally.codes.entry((span.isa, span.code)).or_default();
        (tally.exits, code.0) = (tally.exits + 1, code.0 + 1);
        if span.outcome == Outcome::Paired {
            tally.paired += 1;
            tally.parts.add(&span.parts);
            tally.user_return_unseen += u64::from(span.user_return_unseen);
            tally.poll_unknown += u64::from(span.poll_unknown);
            code.1 = code.1.saturating_add(span.duration_ns());
        }
    }
}
