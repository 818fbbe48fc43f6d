//! The activity of a vCPU's thread between its events.

use super::VcpuThread;
use super::phase::{Cpu, Handling, Phase};
use crate::exit_span::ExitSpan;

/// The activity of a vCPU's thread at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum VcpuActivity {
    /// It runs its guest.
    Guest,
    /// It has exited its guest, as host work shows, but `kvm_exit` has not been traced yet.
    BeforeExit,
    /// It handles an exit in the kernel.
    Kernel,
    /// It runs in the VMM.
    User,
    /// Halt polling: it polls for work before it gives up the CPU.
    HaltPoll,
    /// It was switched out while it could have continued.
    Preempted,
    /// It was woken and waits for a CPU.
    Waiting,
    /// It sleeps.
    Blocked,
    /// Unknown: events were lost or are missing.
    Unknown,
}

impl VcpuThread {
    /// The thread's activity after its last event.
    pub(crate) fn activity(&self) -> VcpuActivity {
        match (&self.phase, self.cpu) {
            (Phase::Unknown, _) => VcpuActivity::Unknown,
            (Phase::Guest { host_since_ns: None, .. }, _) => VcpuActivity::Guest,
            (_, Cpu::Blocked) => VcpuActivity::Blocked,
            (_, Cpu::Woken) => VcpuActivity::Waiting,
            (_, Cpu::Preempted) => VcpuActivity::Preempted,
            (Phase::Guest { .. }, Cpu::Running) => VcpuActivity::BeforeExit,
            (Phase::Exit(open), Cpu::Running) => match open.handling {
                Handling::Kernel => VcpuActivity::Kernel,
                Handling::User => VcpuActivity::User,
            },
        }
    }

    /// The exit being handled.
    pub(crate) fn open_exit(&self) -> Option<&ExitSpan> {
        match &self.phase {
            Phase::Exit(open) => Some(&open.span),
            Phase::Unknown | Phase::Guest { .. } => None,
        }
    }

    /// Whether the VMM handles the open exit.
    pub(crate) fn is_in_user_space(&self) -> bool {
        matches!(&self.phase, Phase::Exit(open) if open.handling == Handling::User)
    }

    /// Whether its guest was entered, and has not exited since.
    pub(crate) fn is_in_guest(&self) -> bool {
        matches!(self.phase, Phase::Guest { .. })
    }

    /// The level that runs, or ran when the open exit began.
    pub(crate) fn level(&self) -> u8 {
        self.open_exit().map_or(1 + u8::from(self.in_l2), |span| span.level)
    }

    /// Start and end of its halt polling, according to the last `kvm_vcpu_wakeup` of the open exit.
    pub(crate) fn polled_ns(&self) -> Option<(u64, u64)> {
        match &self.phase {
            Phase::Exit(open) => open.polled_ns,
            Phase::Unknown | Phase::Guest { .. } => None,
        }
    }
}
