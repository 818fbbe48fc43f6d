//! The source of the interrupt that a guest handled.

use super::cause::{Cause, InterruptKind};
use super::history::{Activity, History, Mode, Raised};
use super::layers::Layers;
use crate::path::Thread;

/// Origin of a guest's interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    /// The host thread that raised it, and the time.
    pub(super) raised_by: Thread,
    pub(super) raised_ns: u64,
    /// The thread of the interrupted vCPU.
    pub(super) vcpu_thread: Thread,
}

/// Origin of an interrupt that a vCPU's guest started to handle at `now_ns`; `None` if no host thread is known to
/// have raised it.
pub(super) fn origin(
    (history, layers): (&History, &Layers),
    vcpu: usize,
    kind: InterruptKind,
    now_ns: u64,
) -> Option<Origin> {
    if kind == InterruptKind::Timer {
        return None;
    }
    let layer = layers.vcpu(vcpu)?;
    let vcpu_thread = layer.thread;
    let now_ns = now_ns.saturating_add(layer.bound_ns);
    let origin = |raised_by, raised_ns| Origin { raised_by, raised_ns, vcpu_thread };
    if let Some((raised_ns, interrupt)) = of_vector(history, vcpu, kind, now_ns) {
        return (!interrupt.in_interrupt).then(|| origin(interrupt.by, raised_ns));
    }
    let earliest_ns = some_entries_ago(history, vcpu, now_ns);
    let raised = || {
        let all = history.raised(vcpu).into_iter().flat_map(|log| log.backwards(now_ns));
        all.take_while(|(at_ns, _)| *at_ns >= earliest_ns)
            .filter(|(_, interrupt)| !interrupt.in_interrupt)
    };
    let by_another = raised().find(|(_, interrupt)| interrupt.by != vcpu_thread);
    let by_itself = || {
        raised().next().filter(|_| matches!(kind, InterruptKind::Irq(_) | InterruptKind::Disk(_)))
    };
    let seen = by_another.or_else(by_itself).map(|(at_ns, interrupt)| origin(interrupt.by, at_ns));
    seen.or_else(|| {
        // No injection event exists, but the vCPU was woken for the interrupt.
        let log = history.thread(vcpu_thread)?;
        let mut all = log.backwards(now_ns).take_while(|(at_ns, _)| *at_ns >= earliest_ns);
        all.find_map(|(at_ns, activity)| match activity {
            Activity::Woken(Cause::Thread(waker)) => Some(origin((vcpu_thread.0, waker), at_ns)),
            _ => None,
        })
    })
}

/// Finds the origin by vector at any distance in time, if events have vectors: the last time this vector was
/// raised since its previous injection.
fn of_vector(
    history: &History,
    vcpu: usize,
    kind: InterruptKind,
    now_ns: u64,
) -> Option<(u64, Raised)> {
    // A softirq can continue the work of any interrupt.
    if matches!(kind, InterruptKind::Softirq(_) | InterruptKind::Unknown) {
        return None;
    }
    let mut injected = history.injected(vcpu)?.backwards(now_ns);
    let (injected_ns, vector) = injected.next()?;
    let before_ns = injected.find(|(_, other)| *other == vector).map_or(0, |(at_ns, _)| at_ns);
    let mut raised = history.raised(vcpu)?.backwards(injected_ns);
    raised
        .find(|(at_ns, interrupt)| *at_ns <= before_ns || interrupt.vector == Some(vector))
        .filter(|(at_ns, _)| *at_ns > before_ns)
}

/// Max entries between raising an interrupt and its handler: one kick out of the guest, one exit for the interrupt
/// window, and some unrelated exits.
const MAX_ENTRIES: usize = 4;

/// The earliest time at which an interrupt that is handled now can have been raised.
fn some_entries_ago(history: &History, vcpu: usize, now_ns: u64) -> u64 {
    let all = history.mode(vcpu).into_iter().flat_map(|log| log.backwards(now_ns));
    let mut entries = all.filter(|(_, mode)| *mode == Mode::Guest);
    entries.nth(MAX_ENTRIES).map_or(0, |(at_ns, _)| at_ns)
}
