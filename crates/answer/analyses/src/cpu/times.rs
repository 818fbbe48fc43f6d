//! Time by state of a vCPU.

use crate::recorded::RecordedParts;
use crate::states::VcpuState;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateTimes {
    by_state: [u64; VcpuState::ALL.len()],
    /// Time of nested guests, a part of the guest states.
    nested_ns: u64,
    /// Switches are recorded, so unsplit time is CPU time in the kernel or in user space.
    runs_unsplit: bool,
}

impl StateTimes {
    pub(super) fn add(&mut self, state: VcpuState, ns: u64) {
        if let Some(sum) = self.by_state.get_mut(state as usize) {
            *sum = sum.saturating_add(ns);
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.runs_unsplit |= other.runs_unsplit;
        VcpuState::ALL.iter().for_each(|&state| self.add(state, other.in_state(state)));
        self.nested_ns = self.nested_ns.saturating_add(other.nested_ns);
    }

    /// Settles the times of exits after all events were seen.
    pub(super) fn settle(&mut self, recorded: &RecordedParts) {
        self.runs_unsplit = recorded.off_cpu;
        for state in VcpuState::ALL {
            let settled = state.settled(recorded);
            if settled != state {
                let ns = self.by_state.get_mut(state as usize).map_or(0, std::mem::take);
                self.add(settled, ns);
            }
        }
    }

    #[must_use]
    pub fn in_state(&self, state: VcpuState) -> u64 {
        self.by_state.get(state as usize).copied().unwrap_or(0)
    }

    /// Total time in some states.
    #[must_use]
    pub fn of_all(&self, states: &[VcpuState]) -> u64 {
        states.iter().map(|&state| self.in_state(state)).fold(0, u64::saturating_add)
    }

    /// Adds time of nested guests, a part of [`VcpuState::Guest`].
    pub(super) fn add_nested(&mut self, ns: u64) {
        self.nested_ns = self.nested_ns.saturating_add(ns);
    }

    /// Time of nested guests, a part of [`Self::guest`].
    #[must_use]
    pub const fn nested(&self) -> u64 {
        self.nested_ns
    }

    /// Total time in some states, without nested guests.
    #[must_use]
    pub fn of_own(&self, states: &[VcpuState]) -> u64 {
        let nested_ns = if states.contains(&VcpuState::Guest) { self.nested_ns } else { 0 };
        self.of_all(states).saturating_sub(nested_ns)
    }

    /// Total time in all states.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.of_all(&VcpuState::ALL)
    }

    /// Time in the guest.
    #[must_use]
    pub fn guest(&self) -> u64 {
        let guest = VcpuState::ALL.iter().filter(|state| state.is_guest());
        guest.map(|&state| self.in_state(state)).fold(0, u64::saturating_add)
    }

    /// CPU time, as far as it is known.
    #[must_use]
    pub fn on_cpu(&self) -> u64 {
        self.guest().saturating_add(self.exits()).saturating_add(self.in_state(VcpuState::HaltPoll))
    }

    /// CPU time without work: the guest's idle thread, and halt polling.
    #[must_use]
    pub fn idle_on_cpu(&self) -> u64 {
        self.of_all(&[VcpuState::GuestIdle, VcpuState::HaltPoll])
    }

    /// CPU time with work.
    #[must_use]
    pub fn busy(&self) -> u64 {
        self.on_cpu().saturating_sub(self.idle_on_cpu())
    }

    /// Run-queue wait.
    #[must_use]
    pub fn stolen(&self) -> u64 {
        self.of_all(&[VcpuState::Waiting, VcpuState::Preempted])
    }

    /// CPU time of exits, as far as it is known.
    #[must_use]
    pub fn exits(&self) -> u64 {
        use VcpuState::{BeforeExit, ExitKernel, ExitUser, NotSplit};
        let split_ns = self.of_all(&[BeforeExit, ExitKernel, ExitUser]);
        let unsplit_ns = if self.runs_unsplit { self.in_state(NotSplit) } else { 0 };
        split_ns.saturating_add(unsplit_ns)
    }
}
