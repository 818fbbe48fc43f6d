//! From when on a part of a VM's time is a cause: above what healthy VMs show.

use super::cause::CauseId;

/// Shares that a part must reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Threshold {
    /// Of the vCPUs' time.
    pub(super) of_all: f64,
    /// Of the time in which the vCPUs were not idle.
    pub(super) of_busy: f64,
}

impl Threshold {
    /// The largest shares of healthy recordings of the lab's corpus, rounded up (docs/why.md has them). Exits for one
    /// instruction hardly occur in healthy VMs; waits for a CPU do, because hosts run other threads as well.
    pub(super) const fn for_cause(id: CauseId) -> Self {
        let (of_all, of_busy) = match id {
            CauseId::ExitStorm => (0.04, 0.07),
            CauseId::SerialConsole | CauseId::LegacyDevice | CauseId::ClockSource => (0.025, 0.05),
            CauseId::VcpuPreempted => (0.15, 0.18),
            CauseId::VcpusShareCpu => (0.1, 0.12),
            CauseId::HostIrq => (0.09, 0.12),
            CauseId::VmmThreadLate | CauseId::VhostLate | CauseId::BackendSlow => (0.1, 0.0),
            // Polling saves guests a wake-up; it is a cause if it takes a good part of what the VM takes.
            CauseId::HaltPollBurn => (0.15, 0.3),
            CauseId::IpiStorm | CauseId::TlbShootdown => (0.04, 0.055),
            CauseId::TimerTicks => (0.05, 0.09),
            _ => (0.04, 0.1),
        };
        Self { of_all, of_busy }
    }
}
