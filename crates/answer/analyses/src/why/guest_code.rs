//! The guest's own code: the cause if nothing else is, and a vCPU has no time left.

use super::Observed;
use super::cause::{Cause, CauseId};
use super::saturation::Saturated;
use crate::advice::Amount;
use crate::cpu::VcpuUse;

/// Share of the vCPU's time in which it must have no time left.
const MIN_SATURATED: f64 = 0.4;
/// Share of that time for which the guest must run.
const MIN_GUEST: f64 = 0.6;

pub(super) fn cause(observed: &Observed<'_>, others: &[Cause]) -> Option<Cause> {
    if !others.is_empty() {
        return None;
    }
    let saturated = |vcpu: &VcpuUse| observed.timed.saturation.of_vcpu(vcpu.recording, vcpu.thread);
    let all = observed.vcpus().map(|vcpu| (vcpu, saturated(vcpu)));
    let full: Vec<(&VcpuUse, Saturated)> =
        all.filter(|(vcpu, saturated)| is_full(vcpu, *saturated)).collect();
    let (first, saturated) = full.iter().max_by_key(|(_, saturated)| saturated.guest_ns)?;
    let cost_ns = full.iter().map(|(_, saturated)| saturated.guest_ns).fold(0, u64::saturating_add);
    let mut cause = observed.cause(CauseId::GuestCode, cost_ns, 0.85);
    if observed.vm.vcpus > 1 && full.len() == 1 {
        cause.vcpu = Some(first.vcpu);
    }
    let cause = cause
        .fact(format!("time without idling on vCPU {}", first.vcpu), Amount::Time(saturated.ns))
        .fact(
            "guest code in that time",
            Amount::Share(saturated.guest_ns as f64 / saturated.ns.max(1) as f64),
        );
    Some(if first.guest_known_ns.is_some() {
        cause
    } else {
        cause.open("a lock or a loop inside the guest: record the guest, too")
    })
}

fn is_full(vcpu: &VcpuUse, saturated: Saturated) -> bool {
    let total_ns = vcpu.times.total();
    saturated.ns as f64 >= total_ns as f64 * MIN_SATURATED
        && saturated.guest_ns as f64 >= saturated.ns as f64 * MIN_GUEST
        && saturated.ns > 0
}
