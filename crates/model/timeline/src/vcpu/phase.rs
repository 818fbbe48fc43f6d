//! The state of a vCPU's thread between two events: data that exists in only one phase is part of
//! that phase.

use crate::exit_span::{Detail, ExitSpan, Handler};
use crate::poll::KernelIntervals;
use crate::thread_event::ThreadEvent;

/// Where the thread is while it handles an exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handling {
    Kernel,
    User,
}

/// Whether the thread is on CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cpu {
    Running,
    /// Switched out while runnable.
    Preempted,
    /// Blocked.
    Blocked,
    /// Woken since it blocked.
    Woken,
}

/// The thread's phase between two events.
#[derive(Debug)]
pub(super) enum Phase {
    /// Unknown: no entry or exit was seen yet, or the latest exit ended without an entry.
    Unknown,
    /// After `kvm_entry` at `since_ns`.
    Guest {
        since_ns: u64,
        /// Time of the first host work.
        host_since_ns: Option<u64>,
    },
    /// After `kvm_exit`. Stored inline, because exits are frequent.
    Exit(OpenExit),
}

/// The exit being handled.
#[derive(Debug)]
pub(super) struct OpenExit {
    pub(super) span: ExitSpan,
    /// Time up to here has been assigned to parts.
    pub(super) accounted_ns: u64,
    pub(super) handling: Handling,
    /// Start and end of halt polling, according to the last `kvm_vcpu_wakeup`.
    pub(super) polled_ns: Option<(u64, u64)>,
}

impl OpenExit {
    /// `kvm_vcpu_wakeup` reports the past: its polling was accounted as kernel time so far.
    pub(super) fn wakeup(&mut self, event: &ThreadEvent, intervals: &mut KernelIntervals) {
        let span = &mut self.span;
        let from_ns = event.stamp_ns.saturating_sub(event.value);
        let waited = event.flag != 0;
        let until_ns = if waited { intervals.fell_asleep(from_ns) } else { Some(event.stamp_ns) };
        match until_ns {
            Some(until_ns) => {
                let polled_ns = intervals.within(from_ns, until_ns);
                span.parts.kernel_ns -= polled_ns.min(span.parts.kernel_ns);
                span.parts.halt_poll_ns += polled_ns;
            }
            None => span.poll_unknown = true,
        }
        self.polled_ns = until_ns.map(|until_ns| (from_ns, until_ns));
        intervals.clear();
    }

    pub(super) fn detail(&mut self, event: &ThreadEvent) {
        if let Some(detail) = Detail::from_number(event.flag) {
            detail.note(&mut self.span.detail, event.value);
        }
    }

    /// Sets the handler; level 1 takes precedence over user space, user space over the kernel.
    pub(super) fn claim(&mut self, handler: Handler) {
        self.span.handler = self.span.handler.max(handler);
    }
}

/// The thread's CPU since its latest exit, including the next stay in the guest.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stay {
    /// The stream of the exit, and of later events unless the thread moved.
    pub(super) stream: u16,
    pub(super) moved: bool,
    /// The thread was off CPU at some time.
    pub(super) was_off: bool,
}
