//! States of lanes.

use crate::calls::Function;
use crate::states::VcpuState;

/// State of a vCPU, a CPU, a task or a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// A state of a vCPU, or of a task on it.
    Vcpu(VcpuState),
    /// A nested guest ran.
    NestedGuest,
    /// A vCPU's thread ran on this CPU.
    CpuVcpu,
    /// Another thread ran on this CPU.
    CpuOther,
    /// The thread ran.
    Running,
    /// The thread was in a function of the kernel image.
    KernelFunction,
    KvmFunction,
    /// The thread was in a function of another module.
    ModuleFunction,
}

impl State {
    /// All states in the order of their numbers.
    pub const ALL: [Self; 22] = [
        Self::Vcpu(VcpuState::GuestUser),
        Self::Vcpu(VcpuState::GuestKernel),
        Self::Vcpu(VcpuState::GuestIrq),
        Self::Vcpu(VcpuState::GuestIdle),
        Self::Vcpu(VcpuState::Guest),
        Self::NestedGuest,
        Self::Vcpu(VcpuState::BeforeExit),
        Self::Vcpu(VcpuState::ExitKernel),
        Self::Vcpu(VcpuState::ExitUser),
        Self::Vcpu(VcpuState::Waiting),
        Self::Vcpu(VcpuState::Preempted),
        Self::Vcpu(VcpuState::HaltPoll),
        Self::Vcpu(VcpuState::Halted),
        Self::Vcpu(VcpuState::Blocked),
        Self::Vcpu(VcpuState::Unknown),
        Self::Vcpu(VcpuState::NotSplit),
        Self::CpuVcpu,
        Self::CpuOther,
        Self::Running,
        Self::KernelFunction,
        Self::KvmFunction,
        Self::ModuleFunction,
    ];

    pub(super) const COUNT: usize = Self::ALL.len();

    /// State of a vCPU at a nesting level.
    #[must_use]
    pub const fn of_vcpu(state: VcpuState, level: u8) -> Self {
        if level > 1 && state.is_guest() {
            return Self::NestedGuest;
        }
        Self::Vcpu(state)
    }

    /// State of a thread in a function. KVM can be a module or built in.
    #[must_use]
    pub fn of_function(function: &Function) -> Self {
        let begins =
            |name: &Option<String>, with| name.as_ref().is_some_and(|name| name.starts_with(with));
        match &function.module {
            Some(_) if begins(&function.module, "kvm") => Self::KvmFunction,
            Some(_) => Self::ModuleFunction,
            None if begins(&function.name, "kvm_") => Self::KvmFunction,
            None => Self::KernelFunction,
        }
    }

    /// Index in [`State::ALL`].
    #[must_use]
    pub const fn number(self) -> u8 {
        const NESTED: u8 = VcpuState::Guest as u8 + 1;
        const VCPUS: u8 = VcpuState::ALL.len() as u8 + 1;
        match self {
            Self::Vcpu(state) if (state as u8) < NESTED => state as u8,
            Self::Vcpu(state) => state as u8 + 1,
            Self::NestedGuest => NESTED,
            Self::CpuVcpu => VCPUS,
            Self::CpuOther => VCPUS + 1,
            Self::Running => VCPUS + 2,
            Self::KernelFunction => VCPUS + 3,
            Self::KvmFunction => VCPUS + 4,
            Self::ModuleFunction => VCPUS + 5,
        }
    }

    /// Name for programs.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Vcpu(state) => state.name(),
            Self::NestedGuest => "nested_guest",
            Self::CpuVcpu => "cpu_vcpu",
            Self::CpuOther => "cpu_other",
            Self::Running => "running",
            Self::KernelFunction => "kernel_function",
            Self::KvmFunction => "kvm_function",
            Self::ModuleFunction => "module_function",
        }
    }

    /// Name for people.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Vcpu(VcpuState::GuestUser) => "guest: user space",
            Self::Vcpu(VcpuState::GuestKernel) => "guest: kernel",
            Self::Vcpu(VcpuState::GuestIrq) => "guest: interrupt",
            Self::Vcpu(VcpuState::GuestIdle) => "guest: idle thread",
            Self::Vcpu(VcpuState::Guest) => "guest",
            Self::NestedGuest => "nested guest",
            Self::Vcpu(VcpuState::BeforeExit) => "host, before the exit",
            Self::Vcpu(VcpuState::ExitKernel) => "exit kernel",
            Self::Vcpu(VcpuState::ExitUser) => "exit user",
            Self::Vcpu(VcpuState::NotSplit) => "not split",
            Self::Vcpu(VcpuState::Waiting) => "run queue",
            Self::Vcpu(VcpuState::Preempted) => "preempted",
            Self::Vcpu(VcpuState::HaltPoll) => "halt polling",
            Self::Vcpu(VcpuState::Halted) => "halted",
            Self::Vcpu(VcpuState::Blocked) => "blocked",
            Self::Vcpu(VcpuState::Unknown) => "not known",
            Self::CpuVcpu => "runs a vCPU",
            Self::CpuOther => "runs another thread",
            Self::Running => "running",
            Self::KernelFunction => "kernel function",
            Self::KvmFunction => "KVM function",
            Self::ModuleFunction => "function of another module",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_places() {
        let numbers = State::ALL.map(|state| usize::from(state.number()));
        assert!(numbers.iter().copied().eq(0..State::COUNT), "{numbers:?}");
    }
}
