//! The states that lanes are drawn in.

use crate::states::VcpuState;

/// What a vCPU, a CPU or a task was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum State {
    /// A thread of the guest ran in user space.
    GuestUser,
    /// A thread of the guest ran in the guest's kernel.
    GuestKernel,
    /// The guest dealt with an interrupt.
    GuestIrq,
    /// The guest's idle thread ran.
    GuestIdle,
    /// The guest ran; what it did was not recorded.
    Guest,
    /// A guest of the guest ran.
    NestedGuest,
    /// The host worked after the hardware had left the guest and before `kvm_exit`.
    BeforeExit,
    /// The host's kernel handled an exit.
    ExitKernel,
    /// The VMM handled an exit in user space.
    ExitUser,
    /// Woken, waiting for a CPU.
    Waiting,
    /// Taken off its CPU for another thread.
    Preempted,
    /// Polling for work before giving up the CPU.
    HaltPoll,
    /// The guest had nothing to do.
    Halted,
    /// Off the CPU, waiting for something else.
    Blocked,
    /// Events were lost, or are missing: not known.
    Unknown,
    /// A vCPU's thread ran on this CPU.
    CpuVcpu,
    /// Another thread ran on this CPU.
    CpuOther,
    /// The thread ran.
    Running,
}

impl State {
    /// All, in the order of their numbers.
    pub const ALL: [Self; 18] = [
        Self::GuestUser,
        Self::GuestKernel,
        Self::GuestIrq,
        Self::GuestIdle,
        Self::Guest,
        Self::NestedGuest,
        Self::BeforeExit,
        Self::ExitKernel,
        Self::ExitUser,
        Self::Waiting,
        Self::Preempted,
        Self::HaltPoll,
        Self::Halted,
        Self::Blocked,
        Self::Unknown,
        Self::CpuVcpu,
        Self::CpuOther,
        Self::Running,
    ];

    /// How many there are.
    pub(super) const COUNT: usize = Self::ALL.len();

    /// That of a vCPU on which a guest of this level runs, or left by an exit.
    #[must_use]
    pub const fn of_vcpu(state: VcpuState, level: u8) -> Self {
        if level > 1 && state.is_guest() {
            return Self::NestedGuest;
        }
        match state {
            VcpuState::GuestUser => Self::GuestUser,
            VcpuState::GuestKernel => Self::GuestKernel,
            VcpuState::GuestIrq => Self::GuestIrq,
            VcpuState::GuestIdle => Self::GuestIdle,
            VcpuState::Guest => Self::Guest,
            VcpuState::BeforeExit => Self::BeforeExit,
            VcpuState::ExitKernel => Self::ExitKernel,
            VcpuState::ExitUser => Self::ExitUser,
            VcpuState::Waiting => Self::Waiting,
            VcpuState::Preempted => Self::Preempted,
            VcpuState::HaltPoll => Self::HaltPoll,
            VcpuState::Halted => Self::Halted,
            VcpuState::Blocked => Self::Blocked,
            VcpuState::Unknown => Self::Unknown,
        }
    }

    /// The name that programs know it by.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::GuestUser => VcpuState::GuestUser.name(),
            Self::GuestKernel => VcpuState::GuestKernel.name(),
            Self::GuestIrq => VcpuState::GuestIrq.name(),
            Self::GuestIdle => VcpuState::GuestIdle.name(),
            Self::Guest => VcpuState::Guest.name(),
            Self::NestedGuest => "nested_guest",
            Self::BeforeExit => VcpuState::BeforeExit.name(),
            Self::ExitKernel => VcpuState::ExitKernel.name(),
            Self::ExitUser => VcpuState::ExitUser.name(),
            Self::Waiting => VcpuState::Waiting.name(),
            Self::Preempted => VcpuState::Preempted.name(),
            Self::HaltPoll => VcpuState::HaltPoll.name(),
            Self::Halted => VcpuState::Halted.name(),
            Self::Blocked => VcpuState::Blocked.name(),
            Self::Unknown => VcpuState::Unknown.name(),
            Self::CpuVcpu => "cpu_vcpu",
            Self::CpuOther => "cpu_other",
            Self::Running => "running",
        }
    }

    /// How people read it.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::GuestUser => "guest: user space",
            Self::GuestKernel => "guest: kernel",
            Self::GuestIrq => "guest: interrupt",
            Self::GuestIdle => "guest: idle thread",
            Self::Guest => "guest",
            Self::NestedGuest => "nested guest",
            Self::BeforeExit => "host, before the exit",
            Self::ExitKernel => "hardware + kernel",
            Self::ExitUser => "VMM user space",
            Self::Waiting => "waiting for a CPU",
            Self::Preempted => "preempted",
            Self::HaltPoll => "halt polling",
            Self::Halted => "halted",
            Self::Blocked => "blocked",
            Self::Unknown => "not known",
            Self::CpuVcpu => "runs a vCPU",
            Self::CpuOther => "runs another thread",
            Self::Running => "running",
        }
    }
}
