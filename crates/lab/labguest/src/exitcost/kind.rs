//! The kinds of exits, and the numbers that identify them.

use serde::{Deserialize, Serialize};

/// "HY": part of numbers that nothing else uses.
pub(crate) const MAGIC: u16 = 0x4859;
/// In the CPUID range reserved for hypervisors, and unused.
pub(crate) const LEAF: u32 = 0x4000_0000 | MAGIC as u32;
/// `IA32_APIC_BASE`: KVM emulates it on every processor.
pub(crate) const MSR_APIC_BASE: u32 = 0x1b;
/// The mask register of the first PIC: KVM emulates it.
pub(crate) const PORT_PIC: u16 = 0x21;
/// A port with an ioeventfd.
pub(crate) const PORT_BELL: u16 = MAGIC + 1;
/// A page without memory or device.
pub(crate) const UNBACKED: u32 = 0x0100_0000;
/// An address with an ioeventfd.
pub(crate) const MEMORY_BELL: u32 = 0x0200_0000;
/// The I/O APIC's registers: KVM emulates them.
pub(crate) const IO_APIC: u32 = 0xfec0_0000;

/// Max samples that fit in the machine's memory.
pub(crate) const MAX_SAMPLES: u64 = 0x2000;

/// A kind of exit, in the order of reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// CPUID of a leaf that does not exist.
    Cpuid,
    /// A hypercall with an unused number.
    Hypercall,
    /// RDMSR of a register that KVM emulates.
    Rdmsr,
    /// WRMSR of the same register with its current value.
    Wrmsr,
    /// A read of CR8, the task priority.
    Cr8Read,
    /// A write of CR8.
    Cr8Write,
    /// A read of a port that KVM emulates.
    PortKernel,
    /// A read of a port that user space emulates.
    PortUser,
    /// A read of memory that KVM emulates.
    MmioKernel,
    /// A read of memory that user space emulates.
    MmioUser,
    /// A write to a port that signals an eventfd.
    KickPort,
    /// A write to memory that signals an eventfd.
    KickMmio,
    /// A frame sent through a virtqueue, from the kick to the interrupt after its completion.
    Send,
    /// From the signal to a halted vCPU to its next instruction.
    HltWake,
}

impl Kind {
    /// All, in the order of reports.
    pub const ALL: [Self; 14] = [
        Self::Cpuid,
        Self::Hypercall,
        Self::Rdmsr,
        Self::Wrmsr,
        Self::Cr8Read,
        Self::Cr8Write,
        Self::PortKernel,
        Self::PortUser,
        Self::MmioKernel,
        Self::MmioUser,
        Self::KickPort,
        Self::KickMmio,
        Self::Send,
        Self::HltWake,
    ];

    /// The name on the command line and in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpuid => "cpuid",
            Self::Hypercall => "hypercall",
            Self::Rdmsr => "rdmsr",
            Self::Wrmsr => "wrmsr",
            Self::Cr8Read => "cr8-read",
            Self::Cr8Write => "cr8-write",
            Self::PortKernel => "port-kernel",
            Self::PortUser => "port-user",
            Self::MmioKernel => "mmio-kernel",
            Self::MmioUser => "mmio-user",
            Self::KickPort => "kick-port",
            Self::KickMmio => "kick-mmio",
            Self::Send => "send",
            Self::HltWake => "hlt-wake",
        }
    }

    /// The number of operations in a run, limited by the memory for samples.
    #[must_use]
    pub fn at_most(self, operations: u64) -> u64 {
        if self == Self::HltWake { operations.min(MAX_SAMPLES) } else { operations }
    }

    /// Whether its instruction exists only in 64-bit mode.
    pub(crate) fn needs_long_mode(self) -> bool {
        matches!(self, Self::Cr8Read | Self::Cr8Write)
    }
}
