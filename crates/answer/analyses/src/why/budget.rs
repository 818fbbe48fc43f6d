//! The time of a VM's vCPUs by what they did, in parts that add up exactly.

use crate::cpu::StateTimes;
use crate::states::VcpuState;

/// Parts of the time from each vCPU's first event to its last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// The sum of all parts.
    pub total_ns: u64,
    /// The guest ran and was not idle.
    pub guest_ns: u64,
    /// The guest had nothing to do: halted, idle on a CPU, or the host polled for it.
    pub idle_ns: u64,
    /// The host handled exits.
    pub exits_ns: u64,
    /// No CPU although the vCPU could have run.
    pub run_queue_ns: u64,
    /// The vCPU's thread slept while it handled an exit.
    pub blocked_ns: u64,
    /// Events were lost, or no event splits this time.
    pub unknown_ns: u64,
}

impl Budget {
    pub(super) fn new(times: &StateTimes) -> Self {
        use VcpuState as S;
        let idle = VcpuState::ALL.into_iter().filter(|state| state.is_idle());
        let idle_ns = idle.map(|state| times.in_state(state)).fold(0, u64::saturating_add);
        let total_ns = times.total();
        let guest_ns = times.guest().saturating_sub(times.in_state(S::GuestIdle));
        let exits_ns = times.exits();
        let run_queue_ns = times.stolen();
        let blocked_ns = times.in_state(S::Blocked);
        let known_ns = [guest_ns, idle_ns, exits_ns, run_queue_ns, blocked_ns];
        let known_ns = known_ns.into_iter().fold(0, u64::saturating_add);
        let unknown_ns = total_ns.saturating_sub(known_ns);
        Self { total_ns, guest_ns, idle_ns, exits_ns, run_queue_ns, blocked_ns, unknown_ns }
    }

    /// The time in which the vCPUs had something to do.
    #[must_use]
    pub const fn busy_ns(&self) -> u64 {
        self.total_ns.saturating_sub(self.idle_ns)
    }
}
