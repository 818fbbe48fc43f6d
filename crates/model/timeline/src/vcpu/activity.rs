//! What a vCPU's thread does at some time: asked between its events.

use super::VcpuThread;
use super::phase::{Cpu, Handling, Phase};
use crate::exit_span::ExitSpan;

/// What a vCPU's thread is doing at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum VcpuActivity {
    /// It runs its guest.
    Guest,
    /// It has left its guest, as the host's work shows, but `kvm_exit` is yet to come.
    BeforeExit,
    /// It handles an exit in the kernel.
    Kernel,
    /// It runs in the VMM.
    User,
    /// It polls for work before it gives up the CPU.
    HaltPoll,
    /// It was taken off the CPU while it could have run on.
    Preempted,
    /// It has been woken up and waits for a CPU.
    Waiting,
    /// It sleeps.
    Blocked,
    /// Unknown: events were lost, or are missing.
    Unknown,
}

impl VcpuThread {
    /// What the thread does, from its last event on.
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

    /// Whether the VMM has the open exit in hand.
    pub(crate) fn is_in_user_space(&self) -> bool {
        matches!(&self.phase, Phase::Exit(open) if open.handling == Handling::User)
    }

    /// Whether its guest was entered, and no exit seen since.
    pub(crate) fn is_in_guest(&self) -> bool {
        matches!(self.phase, Phase::Guest { .. })
    }

    /// The level that runs, or did when the open exit began.
    pub(crate) fn level(&self) -> u8 {
        self.open_exit().map_or(1 + u8::from(self.in_l2), |span| span.level)
    }

    /// From when to when it polled, by the last `kvm_vcpu_wakeup` of the open exit.
    pub(crate) fn polled_ns(&self) -> Option<(u64, u64)> {
        match &self.phase {
            Phase::Exit(open) => open.polled_ns,
            Phase::Unknown | Phase::Guest { .. } => None,
        }
    }
}
