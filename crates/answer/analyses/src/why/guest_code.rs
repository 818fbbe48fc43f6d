//! The guest's own code: the cause if nothing else is, and a vCPU has no time left.

use super::Observed;
use super::cause::{Cause, CauseId};
use crate::advice::Amount;
use crate::states::VcpuState;

/// A vCPU whose guest runs for this share of the time is fully used.
const FULLY_USED: f64 = 0.9;

pub(super) fn cause(observed: &Observed<'_>, others: &[Cause]) -> Option<Cause> {
    if !others.is_empty() {
        return None;
    }
    let mut vcpus = observed.vcpus();
    let guest_ns = |vcpu: &crate::cpu::VcpuUse| {
        vcpu.times.guest().saturating_sub(vcpu.times.in_state(VcpuState::GuestIdle))
    };
    let is_full = |vcpu: &&crate::cpu::VcpuUse| {
        let total_ns = vcpu.times.total();
        total_ns > 0 && guest_ns(vcpu) as f64 >= total_ns as f64 * FULLY_USED
    };
    let full = vcpus.find(is_full)?;
    let share = guest_ns(full) as f64 / full.times.total().max(1) as f64;
    let mut cause = observed.cause(CauseId::GuestCode, observed.budget.guest_ns, 0.85);
    if observed.vm.vcpus > 1 {
        cause.vcpu = Some(full.vcpu);
    }
    let cause = cause.fact(format!("guest code on vCPU {}", full.vcpu), Amount::Share(share));
    Some(if full.guest_known_ns.is_some() {
        cause
    } else {
        cause.open("a lock or a loop inside the guest: record the guest, too")
    })
}
