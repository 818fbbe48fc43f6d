//! Threads that serve a VM and wait for a CPU: those of its VMM, and vhost's workers.

use super::Observed;
use super::cause::{Cause, CauseId};
use crate::advice::Amount;
use crate::states::Part;

pub(super) fn causes(observed: &Observed<'_>) -> Vec<Cause> {
    let recorded = &observed.all_exits.recorded;
    if !recorded.off_cpu || !recorded.wake {
        return Vec::new();
    }
    let late = [(Part::Vmm, CauseId::VmmThreadLate), (Part::Vhost, CauseId::VhostLate)];
    late.into_iter().filter_map(|(part, id)| cause(observed, part, id)).collect()
}

fn cause(observed: &Observed<'_>, part: Part, id: CauseId) -> Option<Cause> {
    let delay = |thread| observed.timed.delays.of_thread(observed.vm.recording, thread);
    let threads = observed.threads_of(part);
    let (thread, delay) = threads
        .map(|thread| (thread, delay(thread.thread)))
        .max_by_key(|(_, delay)| delay.run_queue_ns)?;
    // A guest that has other work meanwhile does not wait for the thread.
    let cost_ns = delay.run_queue_ns.min(observed.budget.idle_ns);
    if !observed.matters(id, cost_ns) {
        return None;
    }
    let name = thread.name.as_deref().unwrap_or("<...>");
    let cause = observed.cause(id, cost_ns, 0.75);
    let cause = cause
        .fact(format!("waits of {name}-{} for a CPU", thread.thread), Amount::Count(delay.waits));
    let cause = cause.instance("longest of these waits", delay.longest_wait);
    Some(cause.open("whether the guest needed that thread meanwhile"))
}
