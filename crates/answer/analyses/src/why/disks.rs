//! Storage below a virtual disk that makes the guest wait.

use super::Observed;
use super::cause::{Cause, CauseId};
use crate::advice::Amount;
use crate::longest_span::LongestSpan;
use crate::states::Part;

/// Share of the recording's time with requests under way from which a disk is a cause.
const MIN_WAITING: f64 = 0.2;

/// A disk by the guest's own requests, or, without a recording of the guest, by threads of the VMM that sleep for storage.
pub(super) fn cause(observed: &Observed<'_>) -> Option<Cause> {
    of_guest(observed).or_else(|| of_threads(observed))
}

fn of_guest(observed: &Observed<'_>) -> Option<Cause> {
    let guest = observed.guest_recording()?;
    let wait = observed.timed.disks.of_recording(guest);
    let is_cause = wait.waited_ns as f64 >= observed.timed.cpu.span_ns as f64 * MIN_WAITING;
    // A guest that computes meanwhile does not wait for its disk.
    let waited_ns = wait.waited_ns.min(observed.budget.idle_ns);
    if !is_cause || !observed.matters(CauseId::BackendSlow, waited_ns) {
        return None;
    }
    let cause = observed.cause(CauseId::BackendSlow, waited_ns, 0.85);
    let cause = cause.fact("requests of the guest to its disks", Amount::Count(wait.requests));
    Some(cause.instance("longest request", wait.longest))
}

fn of_threads(observed: &Observed<'_>) -> Option<Cause> {
    let mut asleep_ns: u64 = 0;
    let mut longest = LongestSpan::default();
    for thread in observed.threads_of(Part::Vmm) {
        let delay = observed.timed.delays.of_thread(observed.vm.recording, thread.thread);
        asleep_ns = asleep_ns.saturating_add(delay.storage_ns);
        longest.merge(delay.longest_storage);
    }
    let waited_ns = asleep_ns.min(observed.budget.idle_ns);
    if (asleep_ns as f64) < observed.timed.cpu.span_ns as f64 * MIN_WAITING
        || !observed.matters(CauseId::BackendSlow, waited_ns)
    {
        return None;
    }
    let cause = observed.cause(CauseId::BackendSlow, waited_ns, 0.7);
    let cause = cause.fact("VMM threads asleep in the host's storage", Amount::Time(asleep_ns));
    Some(
        cause
            .instance("longest sleep", longest)
            .open("whether the guest waited for it: record the guest, too"),
    )
}
