//! Where time goes in a VMM: of exits that it handles, and of its other threads. Parts add up to the whole, exactly.

use super::activity::Activity;
use super::calls::CallKind;

/// A part of the time for which a VMM runs while it has exits in hand; the names are those of [`ExitSplit`].
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
    /// Its name in documents, which is that of the time without its unit.
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

    /// The part that a running thread is in.
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

/// Where the time of exits went while the VMM had them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExitSplit {
    /// From the exit to user space to the return of the `ioctl`.
    pub return_ns: u64,
    /// Handlers of signals, and calls about which signals are let through.
    pub signals_ns: u64,
    /// The VMM's own code.
    pub device_ns: u64,
    /// Running in futex calls.
    pub lock_ns: u64,
    /// Running in other system calls.
    pub calls_ns: u64,
    /// From the `ioctl` of `KVM_RUN` to where KVM has loaded the guest's state.
    pub back_ns: u64,
    /// Running, and what for is not known.
    pub not_split_ns: u64,
    /// Asleep in futex calls.
    pub lock_wait_ns: u64,
    /// Asleep in other system calls.
    pub call_wait_ns: u64,
    /// Asleep elsewhere: in page faults, say.
    pub blocked_ns: u64,
    /// Without a CPU though it could have run.
    pub run_queue_ns: u64,
}

impl ExitSplit {
    /// The sum of the running parts: `user_ns` of the exits.
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

    /// The sum of the others.
    #[must_use]
    pub const fn waited_ns(&self) -> u64 {
        self.lock_wait_ns + self.call_wait_ns + self.blocked_ns + self.run_queue_ns
    }

    /// The time of a running part.
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

    /// All parts, those of running first.
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
    /// Times of a damaged recording may be anything: sums saturate.
    fn add_assign(&mut self, other: Self) {
        for (sum, more) in self.all_mut().into_iter().zip(other.all()) {
            *sum = sum.saturating_add(more);
        }
    }
}

/// Where the time of a VMM's thread went that runs no vCPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadSplit {
    /// Asleep in calls that wait for something to do (`ppoll`, `epoll_wait`, …).
    pub idle_ns: u64,
    /// Running in those.
    pub poll_ns: u64,
    /// The VMM's own code.
    pub dispatch_ns: u64,
    /// Running in calls that move data, or have the kernel move it (`writev`, `io_uring_enter`, …).
    pub submit_ns: u64,
    /// Asleep in those.
    pub submit_wait_ns: u64,
    /// Running in futex calls.
    pub lock_ns: u64,
    /// Asleep in those.
    pub lock_wait_ns: u64,
    /// Handlers of signals, and calls about which signals are let through.
    pub signals_ns: u64,
    /// Running in other system calls.
    pub calls_ns: u64,
    /// Asleep in those.
    pub call_wait_ns: u64,
    /// Asleep elsewhere.
    pub blocked_ns: u64,
    /// Without a CPU though it could have run.
    pub run_queue_ns: u64,
    /// Running, and what for is not known.
    pub not_split_ns: u64,
    /// Whether it ran is not known.
    pub unknown_ns: u64,
}

impl ThreadSplit {
    /// From the thread's first event to its end, or that of the recording: all parts.
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

    /// The parts of running.
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
