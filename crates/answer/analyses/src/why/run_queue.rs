//! vCPUs that could run and have no CPU, by what ran instead.

use super::Observed;
use super::cause::{Cause, CauseId};
use crate::advice::Amount;
use crate::cpu::TakenCpu;
use crate::states::Part;

/// Threads that are named as evidence.
const MAX_NAMED: usize = 2;

/// The waits of a VM's vCPUs for a CPU that point to the same cause.
struct Waits<'o> {
    id: CauseId,
    ns: u64,
    takers: Vec<&'o TakenCpu>,
}

pub(super) fn causes(observed: &Observed<'_>) -> Vec<Cause> {
    let recorded = &observed.all_exits.recorded;
    if !recorded.off_cpu {
        return Vec::new();
    }
    let ids =
        [CauseId::CpuQuota, CauseId::VcpusShareCpu, CauseId::Recorder, CauseId::VcpuPreempted];
    let mut waits = ids.map(|id| Waits { id, ns: 0, takers: Vec::new() });
    for taker in observed.takers() {
        let Some(id) = of_taker(observed, taker) else { continue };
        if let Some(waits) = waits.iter_mut().find(|waits| waits.id == id) {
            waits.ns = waits.ns.saturating_add(if id == CauseId::CpuQuota {
                taker.preempted_ns
            } else {
                taker.ns
            });
            waits.takers.push(taker);
        }
    }
    waits.into_iter().filter_map(|waits| cause(observed, &waits)).collect()
}

/// The cause that a thread which ran instead points to; none for work of the host's kernel.
fn of_taker(observed: &Observed<'_>, taker: &TakenCpu) -> Option<CauseId> {
    // The scheduler leaves a CPU idle beside a thread that was preempted on it only if it may not run there: its cgroup's
    // quota is used up.
    if taker.thread == 0 {
        return Some(CauseId::CpuQuota);
    }
    // Softirqs that do not fit into their interrupts run in these threads: no thread that could be moved away.
    if taker.name.as_deref().is_some_and(|name| name.starts_with("ksoftirqd/")) {
        return None;
    }
    if taker.is_recorder() {
        return Some(CauseId::Recorder);
    }
    match observed.part_of(taker.thread) {
        Part::Vcpu => Some(CauseId::VcpusShareCpu),
        _ => Some(CauseId::VcpuPreempted),
    }
}

fn cause(observed: &Observed<'_>, waits: &Waits<'_>) -> Option<Cause> {
    if !observed.matters(waits.id, waits.ns) {
        return None;
    }
    let mut cause = observed.cause(waits.id, waits.ns, 0.9);
    if waits.id == CauseId::CpuQuota {
        cause = cause.fact("preempted while the CPU was idle", Amount::Time(waits.ns));
    } else {
        for taker in waits.takers.iter().take(MAX_NAMED) {
            let name = taker.name.as_deref().unwrap_or("<...>");
            cause =
                cause.fact(format!("CPU taken by {name}-{}", taker.thread), Amount::Time(taker.ns));
        }
    }
    let longest = observed.timed.longest_waits.of_vm(observed.vm.recording, observed.vm.index);
    let cause = cause.instance("longest wait for a CPU", longest);
    Some(if observed.all_exits.recorded.wake {
        cause
    } else {
        cause.open("waits after wake-ups: record sched:sched_waking")
    })
}
