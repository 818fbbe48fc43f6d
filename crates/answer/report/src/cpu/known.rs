//! The states that a recording has events for: without events a state is null, not zero.

use analyses::cpu::StateTimes;
use analyses::recorded::RecordedParts;
use analyses::states::{GuestEventKinds, VcpuState};

/// The recorded events about some vCPUs.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordedEvents {
    /// Events of the host's recording; `None` without one.
    pub(super) host: Option<RecordedParts>,
    /// Events of the guest's recording; `None` without one.
    pub(super) guest: Option<GuestEventKinds>,
}

impl RecordedEvents {
    /// Whether the recording shows time in a state.
    pub(super) fn knows(&self, state: VcpuState) -> bool {
        use VcpuState as S;
        let host = |is: fn(&RecordedParts) -> bool| self.host.as_ref().is_some_and(is);
        match state {
            S::GuestUser | S::GuestKernel => self.guest.is_some_and(|recording| recording.modes),
            S::GuestIrq => self.guest.is_some_and(|recording| recording.irqs),
            S::GuestIdle => self.guest.is_some(),
            S::Guest => true,
            // A waiting exit shows the halt, even without switches.
            S::Unknown | S::NotSplit | S::Halted => self.host.is_some(),
            S::ExitKernel => host(RecordedParts::is_split),
            S::BeforeExit => host(|recording| recording.host_work),
            S::ExitUser => host(|recording| recording.user),
            S::Preempted | S::Blocked => host(|recording| recording.off_cpu),
            S::Waiting => host(|recording| recording.off_cpu && recording.wake),
            S::HaltPoll => host(|recording| recording.halt_poll),
        }
    }

    /// The time in a state, if the recording shows it.
    pub(super) fn time_in(&self, times: &StateTimes, state: VcpuState) -> Option<u64> {
        self.knows(state).then(|| times.in_state(state))
    }
}
