//! What a vCPU's thread does at some time: asked between its events.

use super::{Cpu, Handling, VcpuThread};
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
        let in_guest = self.guest_since_ns.is_some();
        if !self.open && !in_guest {
            return VcpuActivity::Unknown;
        }
        match (self.cpu, self.handling) {
            _ if !self.open && self.host_since_ns.is_none() => VcpuActivity::Guest,
            (Cpu::OffBlocked, _) => VcpuActivity::Blocked,
            (Cpu::OffRunnable, _) if self.woken => VcpuActivity::Waiting,
            (Cpu::OffRunnable, _) => VcpuActivity::Preempted,
            (Cpu::Running, _) if !self.open => VcpuActivity::BeforeExit,
            (Cpu::Running, Handling::Kernel) => VcpuActivity::Kernel,
            (Cpu::Running, Handling::User) => VcpuActivity::User,
        }
    }

    /// The exit being handled.
    pub(crate) fn open_exit(&self) -> Option<&ExitSpan> {
        Some(&self.span).filter(|_| self.open)
    }

    /// Whether the VMM has the open exit in hand.
    pub(crate) fn is_in_user_space(&self) -> bool {
        self.open && self.handling == Handling::User
    }

    /// Whether its guest was entered, and no exit seen since.
    pub(crate) fn is_in_guest(&self) -> bool {
        !self.open && self.guest_since_ns.is_some()
    }

    /// The level that runs, or did when the open exit began.
    pub(crate) fn level(&self) -> u8 {
        if self.open { self.span.level } else { 1 + u8::from(self.in_l2) }
    }

    /// See `polled_ns`.
    pub(crate) fn polled_ns(&self) -> Option<(u64, u64)> {
        self.polled_ns
    }
}
