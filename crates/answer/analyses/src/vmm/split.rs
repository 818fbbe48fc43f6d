//! Time in a VMM by part, for exits and for other threads. Parts add up exactly.

use super::activity::Activity;
use super::calls::CallKind;

/// A CPU-time part of exits that a VMM handles; see the fields of [`ExitSplit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum VmmPart {
    /// See [`ExitSplit::return_ns`].
    Return,
    /// See [`ExitSplit::signals_ns`].
    Signals,
    /// See [`ExitSplit::device_ns`].
    Device,
    /// See [`ExitSplit::lock_ns`].
    Lock,
    /// See [`ExitSplit::calls_ns`].
    Calls,
    /// See [`ExitSplit::back_ns`].
    Back,
    /// See [`ExitSplit::not_split_ns`].
    NotSplit,
}

impl VmmPart {
    /// Name in documents: the field's name without its unit.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Return => "return",
            Self::Signals => "signals",
            Self::Device => "device",
            Self::Lock => "lock",
            Self::Calls => "calls",
            Self::Back => "back",
            Self::NotSplit => "not_split",
        }
    }

    /// The part of a running thread's activity.
    pub(super) const fn from_activity(activity: Activity) -> Self {
        match activity {
            Activity::Unknown => Self::NotSplit,
            Activity::Returning => Self::Return,
            Activity::Code => Self::Device,
            Activity::Handler => Self::Signals,
            Activity::Call(call) => match call.kind {
                CallKind::Run => Self::Back,
                CallKind::Futex => Self::Lock,
                CallKind::Signals | CallKind::HandlerEnds => Self::Signals,
                CallKind::Poll | CallKind::Io | CallKind::Other => Self::Calls,
            },
        }
    }
}

/// Time by part while the VMM handled exits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExitSplit {
    /// CPU time from the exit to user space to the return of the `ioctl`.
    pub return_ns: u64,
    /// CPU time in signal handlers, and in calls that change signal masks.
    pub signals_ns: u64,
    /// CPU time in the VMM's own code.
    pub device_ns: u64,
    /// CPU time in futex calls.
    pub lock_ns: u64,
    /// CPU time in other system calls.
    pub calls_ns: u64,
    /// CPU time from the `ioctl` of `KVM_RUN` until KVM has loaded the guest's state.
    pub back_ns: u64,
    /// CPU time with an unknown activity.
    pub not_split_ns: u64,
    /// Sleep in futex calls.
    pub lock_wait_ns: u64,
    /// Sleep in other system calls.
    pub call_wait_ns: u64,
    /// Sleep elsewhere, for example in page faults.
    pub blocked_ns: u64,
    /// Run-queue wait.
    pub run_queue_ns: u64,
}

impl ExitSplit {
    /// Sum of the CPU-time parts: `user_ns` of the exits.
    #[must_use]
    pub const fn user_ns(&self) -> u64 {
        self.return_ns
            + self.signals_ns
            + self.device_ns
            + self.lock_ns
            + self.calls_ns
            + self.back_ns
            + self.not_split_ns
    }

    /// Sum of the other parts.
    #[must_use]
    pub const fn waited_ns(&self) -> u64 {
        self.lock_wait_ns + self.call_wait_ns + self.blocked_ns + self.run_queue_ns
    }

    /// Time of a CPU-time part.
    #[must_use]
    pub const fn running(&self, part: VmmPart) -> u64 {
        match part {
            VmmPart::Return => self.return_ns,
            VmmPart::Signals => self.signals_ns,
            VmmPart::Device => self.device_ns,
            VmmPart::Lock => self.lock_ns,
            VmmPart::Calls => self.calls_ns,
            VmmPart::Back => self.back_ns,
            VmmPart::NotSplit => self.not_split_ns,
        }
    }

    pub(super) fn runs(&mut self, part: VmmPart, ns: u64) {
        *match part {
            VmmPart::Return => &mut self.return_ns,
            VmmPart::Signals => &mut self.signals_ns,
            VmmPart::Device => &mut self.device_ns,
            VmmPart::Lock => &mut self.lock_ns,
            VmmPart::Calls => &mut self.calls_ns,
            VmmPart::Back => &mut self.back_ns,
            VmmPart::NotSplit => &mut self.not_split_ns,
        } += ns;
    }

    pub(super) fn sleeps(&mut self, activity: Activity, ns: u64) {
        *match activity {
            Activity::Call(call) => match call.kind {
                CallKind::Run => &mut self.blocked_ns,
                CallKind::Futex => &mut self.lock_wait_ns,
                _ => &mut self.call_wait_ns,
            },
            _ => &mut self.blocked_ns,
        } += ns;
    }

    /// All parts, CPU-time parts first.
    #[must_use]
    pub const fn all(&self) -> [u64; 11] {
        let Self { return_ns, signals_ns, device_ns, lock_ns, calls_ns, back_ns, .. } = *self;
        let Self { not_split_ns, lock_wait_ns, call_wait_ns, blocked_ns, run_queue_ns, .. } = *self;
        [
            return_ns,
            signals_ns,
            device_ns,
            lock_ns,
            calls_ns,
            back_ns,
            not_split_ns,
            lock_wait_ns,
            call_wait_ns,
            blocked_ns,
            run_queue_ns,
        ]
    }

    fn all_mut(&mut self) -> [&mut u64; 11] {
        [
            &mut self.return_ns,
            &mut self.signals_ns,
            &mut self.device_ns,
            &mut self.lock_ns,
            &mut self.calls_ns,
            &mut self.back_ns,
            &mut self.not_split_ns,
            &mut self.lock_wait_ns,
            &mut self.call_wait_ns,
            &mut self.blocked_ns,
            &mut self.run_queue_ns,
        ]
    }
}

impl std::ops::AddAssign for ExitSplit {
    /// Saturates: times of a damaged recording can have any value.
    fn add_assign(&mut self, other: Self) {
        for (sum, more) in self.all_mut().into_iter().zip(other.all()) {
            *sum = sum.saturating_add(more);
        }
    }
}

/// Time by part of a VMM's thread that is not a vCPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadSplit {
    /// Sleep in calls that wait for work (`ppoll`, `epoll_wait`, …).
    pub idle_ns: u64,
    /// CPU time in these calls.
    pub poll_ns: u64,
    /// CPU time in the VMM's own code.
    pub dispatch_ns: u64,
    /// CPU time in calls that move data (`writev`, `io_uring_enter`, …).
    pub submit_ns: u64,
    /// Sleep in these calls.
    pub submit_wait_ns: u64,
    /// CPU time in futex calls.
    pub lock_ns: u64,
    /// Sleep in futex calls.
    pub lock_wait_ns: u64,
    /// CPU time in signal handlers, and in calls that change signal masks.
    pub signals_ns: u64,
    /// CPU time in other system calls.
    pub calls_ns: u64,
    /// Sleep in other system calls.
    pub call_wait_ns: u64,
    /// Sleep elsewhere.
    pub blocked_ns: u64,
    /// Run-queue wait.
    pub run_queue_ns: u64,
    /// CPU time with an unknown activity.
    pub not_split_ns: u64,
    /// Time with an unknown CPU state.
    pub unknown_ns: u64,
}

impl ThreadSplit {
    /// Sum of all parts: from the thread's first event to its end, or to the end of the recording.
    #[must_use]
    pub const fn wall_ns(&self) -> u64 {
        self.cpu_ns()
            + self.idle_ns
            + self.submit_wait_ns
            + self.lock_wait_ns
            + self.call_wait_ns
            + self.blocked_ns
            + self.run_queue_ns
            + self.unknown_ns
    }

    /// Sum of the CPU-time parts.
    #[must_use]
    pub const fn cpu_ns(&self) -> u64 {
        self.poll_ns
            + self.dispatch_ns
            + self.submit_ns
            + self.lock_ns
            + self.signals_ns
            + self.calls_ns
            + self.not_split_ns
    }

    pub(super) fn runs(&mut self, activity: Activity, ns: u64) {
        *match activity {
            Activity::Unknown | Activity::Returning => &mut self.not_split_ns,
            Activity::Code => &mut self.dispatch_ns,
            Activity::Handler => &mut self.signals_ns,
            Activity::Call(call) => match call.kind {
                CallKind::Poll => &mut self.poll_ns,
                CallKind::Io => &mut self.submit_ns,
                CallKind::Futex => &mut self.lock_ns,
                CallKind::Signals | CallKind::HandlerEnds => &mut self.signals_ns,
                CallKind::Run | CallKind::Other => &mut self.calls_ns,
            },
        } += ns;
    }

    pub(super) fn sleeps(&mut self, activity: Activity, ns: u64) {
        *match activity {
            Activity::Call(call) => match call.kind {
                CallKind::Poll => &mut self.idle_ns,
                CallKind::Io => &mut self.submit_wait_ns,
                CallKind::Futex => &mut self.lock_wait_ns,
                _ => &mut self.call_wait_ns,
            },
            _ => &mut self.blocked_ns,
        } += ns;
    }
}
