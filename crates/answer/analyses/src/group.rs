//! Properties by which exit reports group, and the name of a group.

use timeline::Detail;
use timeline::arch::Isa;

use timeline::reasons::Code;

/// A property exits can be grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum By {
    /// Virtual machine.
    Vm,
    /// vCPU within its VM.
    Vcpu,
    /// 1: guests of the recorded machine; 2: guests inside those.
    Level,
    /// Exit reason, by the kernel's name.
    Reason,
    /// Exit reason, by its raw code.
    Code,
    /// Model-specific register.
    Msr,
    /// I/O port.
    Port,
    /// Guest physical address.
    Gpa,
    /// Hypercall number.
    Hypercall,
    /// CPUID leaf.
    CpuidLeaf,
    /// Guest function at the exit.
    Symbol,
    /// vCPU thread.
    Task,
}

impl By {
    /// All properties with their names on the command line.
    pub const NAMES: [(&'static str, Self); 12] = [
        ("vm", Self::Vm),
        ("vcpu", Self::Vcpu),
        ("level", Self::Level),
        ("reason", Self::Reason),
        ("code", Self::Code),
        ("msr", Self::Msr),
        ("port", Self::Port),
        ("gpa", Self::Gpa),
        ("hypercall", Self::Hypercall),
        ("cpuid_leaf", Self::CpuidLeaf),
        ("symbol", Self::Symbol),
        ("task", Self::Task),
    ];

    /// The default grouping.
    pub const DEFAULT: [Self; 3] = [Self::Vm, Self::Level, Self::Reason];

    /// The detail that this property stands for; `None` if it is not a detail.
    #[must_use]
    pub const fn detail(self) -> Option<Detail> {
        match self {
            Self::Msr => Some(Detail::Msr),
            Self::Port => Some(Detail::Port),
            Self::Gpa => Some(Detail::Gpa),
            Self::Hypercall => Some(Detail::Hypercall),
            Self::CpuidLeaf => Some(Detail::CpuidLeaf),
            _ => None,
        }
    }
}

/// One group. Properties that the report does not group by are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group {
    /// Name of the VM.
    pub vm: Option<String>,
    /// vCPU id in the VM.
    pub vcpu: Option<u32>,
    /// Virtualisation level.
    pub level: Option<u8>,
    /// Instruction set of the exit.
    pub isa: Option<Isa>,
    /// The kernel's name of the reason.
    pub reason: Option<String>,
    /// The raw code.
    pub code: Option<Code>,
    /// Register, port, address, number or leaf; `None` for exits without one.
    pub detail: Option<(Detail, u64)>,
    /// Guest function, or its address.
    pub symbol: Option<String>,
    /// Thread, as `comm-tid`.
    pub task: Option<String>,
}
