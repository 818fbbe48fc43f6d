//! The states that lanes are drawn in.

use crate::calls::Function;
use crate::states::VcpuState;

/// What a vCPU, a CPU or a task was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// A vCPU, or a task on it, did this.
    Vcpu(VcpuState),
    /// A guest of the guest ran.
    NestedGuest,
    /// A vCPU's thread ran on this CPU.
    CpuVcpu,
    /// Another thread ran on this CPU.
    CpuOther,
    /// The thread ran.
    Running,
    /// The thread was in a function of the kernel itself.
    KernelFunction,
    KvmFunction,
    /// It was in a function of another module.
    ModuleFunction,
}

impl State {
    /// All, in the order of their numbers.
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

    /// How many there are.
    pub(super) const COUNT: usize = Self::ALL.len();

    /// That of a vCPU on which a guest of this level runs, or left by an exit.
    #[must_use]
    pub const fn of_vcpu(state: VcpuState, level: u8) -> Self {
        if level > 1 && state.is_guest() {
            return Self::NestedGuest;
        }
        Self::Vcpu(state)
    }

    /// That of a thread in a function. KVM may be modules, or built into the kernel.
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

    /// Its place in [`State::ALL`].
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

    /// The name that programs know it by.
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

    /// How people read it.
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
