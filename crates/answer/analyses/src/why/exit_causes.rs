//! Exits that take much of a VM's time, by the cause that they point to.

use std::collections::BTreeMap;

use timeline::Detail;

use super::Observed;
use super::cause::{Cause, CauseId};
use super::exit_class::class_of;
use super::idle;
use crate::advice::Amount;
use crate::advice::evidence::Place;
use crate::advice::ports::device_at;
use crate::advice::sums::ExitSums;
use crate::advice::thresholds::MIN_EXITS;
use crate::nested::NestedRow;

/// Exits of a VM that point to the same cause.
#[derive(Debug, Default)]
struct Class<'o> {
    sums: ExitSums,
    places: Vec<&'o Place>,
}

pub(super) fn causes(observed: &Observed<'_>) -> Vec<Cause> {
    let Some(exits) = observed.exits else { return Vec::new() };
    // An exit storm is of one instruction; other causes have exits of several reasons.
    let mut classes: BTreeMap<(CauseId, Option<&str>), Class<'_>> = BTreeMap::new();
    for place in &exits.places {
        if let Some(id) = class_of(place) {
            let reason = Some(place.reason.as_str()).filter(|_| id == CauseId::ExitStorm);
            let class = classes.entry((id, reason)).or_default();
            class.sums.merge(&place.sums);
            class.places.push(place);
        }
    }
    let sleeps = vmm_sleeps(observed, &exits.places);
    let sums = |id| classes.get(&(id, None)).map(|class| class.sums).unwrap_or_default();
    let received_ns = received_ns(observed, &sums(CauseId::IpiStorm), &sums(CauseId::HostIrq));
    let costs =
        classes.iter().filter_map(|((id, _), class)| of_class(observed, *id, class, received_ns));
    costs.chain(sleeps).collect()
}

fn of_class(
    observed: &Observed<'_>,
    id: CauseId,
    class: &Class<'_>,
    received_ns: u64,
) -> Option<Cause> {
    let cost_ns = cost_ns(observed, id, class, received_ns);
    if class.sums.count < MIN_EXITS || !observed.matters(id, cost_ns) {
        return None;
    }
    let id = if id == CauseId::IpiStorm { ipis_of(observed, &class.sums) } else { id };
    let mut cause = with_evidence(observed, class, observed.cause(id, cost_ns, 0.9));
    if id == CauseId::NestedExits {
        cause = with_factor(observed, cause);
    }
    let has_details = observed.all_exits.has_details;
    let open = "which register, port or device exits were about";
    Some(if has_details { cause } else { cause.open(open) })
}

fn cost_ns(observed: &Observed<'_>, id: CauseId, class: &Class<'_>, received_ns: u64) -> u64 {
    let recorded = &observed.all_exits.recorded;
    let taken_ns = class.sums.taken_ns(recorded);
    match id {
        CauseId::PageFault if recorded.off_cpu => {
            taken_ns.saturating_add(class.sums.parts.blocked_ns)
        }
        CauseId::TimerTicks => taken_ns.saturating_sub(idle::timers_ns(observed, &class.sums)),
        CauseId::IpiStorm => taken_ns.saturating_add(received_ns),
        CauseId::HostIrq => taken_ns.saturating_sub(received_ns),
        _ => taken_ns,
    }
}

/// Adds the exits at the costliest place, the longest exit, and the VMM's part.
fn with_evidence(observed: &Observed<'_>, class: &Class<'_>, mut cause: Cause) -> Cause {
    let recorded = &observed.all_exits.recorded;
    let costliest = class.places.iter().max_by_key(|place| place.sums.taken_ns(recorded));
    if let Some(place) = costliest {
        cause = cause.fact(about(place), Amount::Count(place.sums.count));
    }
    cause = cause.instance("longest exit", class.sums.longest);
    if class.places.len() > 1 {
        cause = cause.fact("exits in all", Amount::Count(class.sums.count));
    }
    let user_ns = class.sums.user_ns(recorded);
    if recorded.user && user_ns > 0 {
        let part = user_ns as f64 / cause.cost_ns.max(1) as f64;
        cause = cause.fact("part of the cost in the VMM", Amount::Share(part));
    }
    cause
}

/// Adds how many exits of the VM one exit of its own guests takes, for the reason that takes most.
fn with_factor(observed: &Observed<'_>, cause: Cause) -> Cause {
    let is_handled = |row: &&NestedRow| row.reflected > 0 && !row.waiting && !row.never_returned();
    let rows = observed.all_exits.nested_in(&observed.vm.name).filter(is_handled);
    let costliest = rows.max_by_key(|row| row.ancillary_count());
    let Some(row) = costliest else { return cause };
    let factor = row.ancillary_count() as f64 / row.reflected as f64;
    cause.fact(
        format!("exits of the VM for each {} exit of its own guest", row.reason),
        Amount::Ratio(factor),
    )
}

/// What exits were about, in words.
fn about(place: &Place) -> String {
    let reason = &place.reason;
    match place.detail {
        Some((Detail::Port, port)) => match device_at(port) {
            Some(device) => format!("{reason} exits at port {port:#x}, {device}"),
            None => format!("{reason} exits at port {port:#x}"),
        },
        Some((Detail::Msr, msr)) => format!("{reason} exits for MSR {msr:#x}"),
        Some((Detail::Gpa, gpa)) => format!("{reason} exits at guest address {gpa:#x}"),
        Some((Detail::Hypercall, number)) => format!("{reason} exits for hypercall {number}"),
        _ => format!("{reason} exits"),
    }
}

/// Whether vCPUs interrupt one another to flush TLBs, or to wake threads. Linux makes functions run on other CPUs for both, but
/// a CPU that is woken was idle before.
fn ipis_of(observed: &Observed<'_>, ipis: &ExitSums) -> CauseId {
    let sent = observed.timed.ipis.sent(observed.vm_vcpus());
    let halts = observed.exits.map_or(0, |exits| exits.idles.count);
    let wakes = halts.saturating_mul(2) >= ipis.count;
    if sent.calls > sent.reschedules && !wakes { CauseId::TlbShootdown } else { CauseId::IpiStorm }
}

/// The part of the exits for interrupts that the VM's own vCPUs sent: each stops its receiver.
fn received_ns(observed: &Observed<'_>, ipis: &ExitSums, interrupts: &ExitSums) -> u64 {
    let cost_ns = u128::from(interrupts.taken_ns(&observed.all_exits.recorded));
    let part_ns = cost_ns * u128::from(ipis.count.min(interrupts.count));
    u64::try_from(part_ns / u128::from(interrupts.count.max(1))).unwrap_or(u64::MAX)
}

/// vCPU threads that sleep in the VMM while they handle an exit.
fn vmm_sleeps(observed: &Observed<'_>, places: &[Place]) -> Option<Cause> {
    let recorded = &observed.all_exits.recorded;
    let handled =
        places.iter().filter(|place| place.level == 1 && !place.waiting && place.sums.by_user > 0);
    let mut sums = ExitSums::of_all(handled.map(|place| &place.sums));
    let blocked_ns = std::mem::take(&mut sums.parts.blocked_ns);
    if !recorded.off_cpu || !recorded.wake || !observed.matters(CauseId::VmmLock, blocked_ns) {
        return None;
    }
    let cause = observed.cause(CauseId::VmmLock, blocked_ns, 0.7);
    let cause = cause.fact("exits handled by the VMM", Amount::Count(sums.by_user));
    Some(
        cause
            .instance("longest exit", sums.longest)
            .open("a lock or a system call: record system calls to know"),
    )
}
