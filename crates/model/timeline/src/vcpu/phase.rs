//! Where a vCPU's thread is between two of its events: what is known in one phase alone is in no other.

use crate::exit_span::{Detail, ExitSpan, Handler};
use crate::poll::KernelIntervals;
use crate::thread_event::ThreadEvent;

/// Where the thread is while an exit is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handling {
    Kernel,
    User,
}

/// Whether the thread runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cpu {
    Running,
    /// It was taken off its CPU.
    Preempted,
    /// It sleeps.
    Blocked,
    /// It was woken since it went to sleep.
    Woken,
}

/// Between which events the thread is.
#[derive(Debug)]
pub(super) enum Phase {
    /// Unknown: no entry and no exit was seen yet, or the latest exit ended without an entry.
    Unknown,
    /// After `kvm_entry`, whose time this is.
    Guest {
        since_ns: u64,
        /// First sign of the host.
        host_since_ns: Option<u64>,
    },
    /// After `kvm_exit`. In place, for it is large and exits are many.
    Exit(OpenExit),
}

/// The exit being handled.
#[derive(Debug)]
pub(super) struct OpenExit {
    pub(super) span: ExitSpan,
    /// Up to here its time has been given to its parts.
    pub(super) accounted_ns: u64,
    pub(super) handling: Handling,
    /// From when to when the thread polled, by the last `kvm_vcpu_wakeup`.
    pub(super) polled_ns: Option<(u64, u64)>,
}

impl OpenExit {
    /// `kvm_vcpu_wakeup` looks back: the polling it reports was accounted to the kernel so far.
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

    /// Level 1 outranks user space, user space the kernel.
    pub(super) fn claim(&mut self, handler: Handler) {
        self.span.handler = self.span.handler.max(handler);
    }
}

/// Where the thread was from its latest exit on, in the guest that was entered after it as well.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stay {
    /// Holds the exit, and the events after it unless the thread moved.
    pub(super) stream: u16,
    pub(super) moved: bool,
    /// The thread was off its CPU at some time.
    pub(super) was_off: bool,
}
