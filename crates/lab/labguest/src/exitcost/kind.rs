//! The kinds of exits that are made, and the numbers that identify them.

use serde::{Deserialize, Serialize};

/// "HY": in numbers that nobody else uses.
pub(crate) const MAGIC: u16 = 0x4859;
/// Of the range that is left to hypervisors, and not used by any.
pub(crate) const LEAF: u32 = 0x4000_0000 | MAGIC as u32;
/// `IA32_APIC_BASE`: KVM handles it in its own code on every processor.
pub(crate) const MSR_APIC_BASE: u32 = 0x1b;
/// The mask of the first PIC: a device of KVM's own.
pub(crate) const PORT_PIC: u16 = 0x21;
/// Where a write rings a doorbell.
pub(crate) const PORT_BELL: u16 = MAGIC + 1;
/// A page that has neither memory nor a device.
pub(crate) const UNBACKED: u32 = 0x0100_0000;
/// Where a write of memory rings a doorbell.
pub(crate) const MEMORY_BELL: u32 = 0x0200_0000;
/// The I/O APIC's registers: a device of KVM's own.
pub(crate) const IO_APIC: u32 = 0xfec0_0000;

/// Samples that the machine has room for.
pub(crate) const MAX_SAMPLES: u64 = 0x2000;

/// A kind of exits; in the order of reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// CPUID of a leaf that does not exist.
    Cpuid,
    /// A hypercall with an unused number.
    Hypercall,
    /// RDMSR of a register that KVM keeps.
    Rdmsr,
    /// WRMSR of the same, with what is in it.
    Wrmsr,
    /// A read of CR8, the priority of interrupts.
    Cr8Read,
    /// A write of CR8.
    Cr8Write,
    /// A read of a port at which KVM has a device.
    PortKernel,
    /// A read of a port that is user space's.
    PortUser,
    /// A read of memory at which KVM has a device.
    MmioKernel,
    /// A read of memory that is user space's.
    MmioUser,
    /// A write to a port that rings an eventfd.
    KickPort,
    /// A write to memory that rings an eventfd.
    KickMmio,
    /// A frame sent by a queue of a virtio device, from the doorbell to the interrupt that says it's gone.
    Send,
    /// From a signal for a halted processor to its next instruction.
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

    /// As it is named on the command line and in reports.
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

    /// This many operations in a run, or as many as there is room to keep samples of.
    #[must_use]
    pub fn at_most(self, operations: u64) -> u64 {
        if self == Self::HltWake { operations.min(MAX_SAMPLES) } else { operations }
    }

    /// Whether 64-bit mode alone has its instruction.
    pub(crate) fn needs_long_mode(self) -> bool {
        matches!(self, Self::Cr8Read | Self::Cr8Write)
    }
}
