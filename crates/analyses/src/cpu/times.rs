//! Time by state of a vCPU.

use crate::states::VcpuState;

/// Time by state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateTimes([u64; VcpuState::ALL.len()]);

impl StateTimes {
    pub(super) fn add(&mut self, state: VcpuState, ns: u64) {
        if let Some(sum) = self.0.get_mut(state as usize) {
            *sum = sum.saturating_add(ns);
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        VcpuState::ALL.iter().for_each(|&state| self.add(state, other.of(state)));
    }

    /// The time in a state.
    #[must_use]
    pub fn of(&self, state: VcpuState) -> u64 {
        self.0.get(state as usize).copied().unwrap_or(0)
    }

    /// The time in some states.
    #[must_use]
    pub fn of_all(&self, states: &[VcpuState]) -> u64 {
        states.iter().map(|&state| self.of(state)).fold(0, u64::saturating_add)
    }

    /// The time in all states.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.of_all(&VcpuState::ALL)
    }

    /// The time in the guest.
    #[must_use]
    pub fn guest(&self) -> u64 {
        let guest = VcpuState::ALL.iter().filter(|state| state.is_guest());
        guest.map(|&state| self.of(state)).fold(0, u64::saturating_add)
    }

    /// The time on a CPU, as far as it is known.
    #[must_use]
    pub fn on_cpu(&self) -> u64 {
        use VcpuState::{BeforeExit, ExitKernel, ExitUser, HaltPoll};
        self.guest().saturating_add(self.of_all(&[BeforeExit, ExitKernel, ExitUser, HaltPoll]))
    }

    /// The time on a CPU without anything to do: the guest's idle thread, and the host's polling.
    #[must_use]
    pub fn idle_on_cpu(&self) -> u64 {
        self.of_all(&[VcpuState::GuestIdle, VcpuState::HaltPoll])
    }

    /// The time on a CPU with something to do.
    #[must_use]
    pub fn busy(&self) -> u64 {
        self.on_cpu().saturating_sub(self.idle_on_cpu())
    }

    /// The time for which the host had no CPU for it.
    #[must_use]
    pub fn stolen(&self) -> u64 {
        self.of_all(&[VcpuState::Waiting, VcpuState::Preempted])
    }

    /// The time in which the host dealt with exits, on a CPU.
    #[must_use]
    pub fn exits(&self) -> u64 {
        self.of_all(&[VcpuState::BeforeExit, VcpuState::ExitKernel, VcpuState::ExitUser])
    }
}
