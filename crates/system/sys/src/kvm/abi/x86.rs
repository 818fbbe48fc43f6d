//! Structures and requests of `/dev/kvm` on x86.

use super::Argument;

pub(in crate::kvm) mod request {
    use super::super::Request;
    use super::{Cpuid, DeviceAttribute, Irqchip, Registers, SpecialRegisters};

    // The size in these two numbers is that of the table's header.
    pub(in crate::kvm) const GET_SUPPORTED_CPUID: Request<Cpuid> = Request::new(3, 0x05, 8);
    pub(in crate::kvm) const SET_CPUID2: Request<Cpuid> = Request::new(1, 0x90, 8);
    pub(in crate::kvm) const GET_IRQCHIP: Request<Irqchip> = Request::for_argument(3, 0x62);
    pub(in crate::kvm) const SET_IRQCHIP: Request<Irqchip> = Request::for_argument(2, 0x63);
    pub(in crate::kvm) const SET_REGS: Request<Registers> = Request::for_argument(1, 0x82);
    pub(in crate::kvm) const GET_SREGS: Request<SpecialRegisters> = Request::for_argument(2, 0x83);
    pub(in crate::kvm) const SET_SREGS: Request<SpecialRegisters> = Request::for_argument(1, 0x84);
    pub(in crate::kvm) const INTERRUPT: Request<u32> = Request::for_argument(1, 0x86);
    pub(in crate::kvm) const GET_DEVICE_ATTR: Request<DeviceAttribute> =
        Request::for_argument(1, 0xe2);
}

impl Argument for u32 {}

/// `struct kvm_regs`.
#[repr(C)]
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "registers are known by their names")]
pub struct Registers {
    pub rax: u64,
    pub rbx: u64,
    pub rcx: u64,
    pub rdx: u64,
    pub rsi: u64,
    pub rdi: u64,
    pub rsp: u64,
    pub rbp: u64,
    /// r8 to r15.
    pub numbered: [u64; 8],
    pub rip: u64,
    pub rflags: u64,
}

impl Argument for Registers {}

/// `struct kvm_segment`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "the fields of a descriptor, as processors' manuals have them")]
pub struct Segment {
    pub base: u64,
    pub limit: u32,
    pub selector: u16,
    pub kind: u8,
    pub present: u8,
    pub dpl: u8,
    pub db: u8,
    pub s: u8,
    pub l: u8,
    pub g: u8,
    pub avl: u8,
    pub unusable: u8,
    pub padding: u8,
}

/// `struct kvm_dtable`: the position of a descriptor table.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Table {
    /// Address of the first descriptor.
    pub base: u64,
    /// Offset of the last byte.
    pub limit: u16,
    /// Padding.
    pub padding: [u16; 3],
}

/// `struct kvm_sregs`.
#[repr(C)]
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "registers are known by their names")]
pub struct SpecialRegisters {
    pub cs: Segment,
    pub ds: Segment,
    pub es: Segment,
    pub fs: Segment,
    pub gs: Segment,
    pub ss: Segment,
    pub tr: Segment,
    pub ldt: Segment,
    pub gdt: Table,
    pub idt: Table,
    pub cr0: u64,
    pub cr2: u64,
    pub cr3: u64,
    pub cr4: u64,
    pub cr8: u64,
    pub efer: u64,
    pub apic_base: u64,
    interrupt_bitmap: [u64; 4],
}

impl Argument for SpecialRegisters {}

/// Capacity of a [`Cpuid`] table; KVM in Linux 6.18 returns about sixty entries.
const CPUID_ENTRIES: usize = 256;

/// `struct kvm_cpuid2` with its entries of ten words each.
#[repr(C)]
#[derive(Debug)]
pub(in crate::kvm) struct Cpuid {
    count: u32,
    padding: u32,
    entries: [[u32; 10]; CPUID_ENTRIES],
}

impl Argument for Cpuid {}

impl Cpuid {
    pub(in crate::kvm) fn empty() -> Box<Self> {
        let entries = [[0; 10]; CPUID_ENTRIES];
        Box::new(Self { count: CPUID_ENTRIES as u32, padding: 0, entries })
    }
}

/// `struct kvm_irqchip`.
#[repr(C)]
#[derive(Debug)]
pub(in crate::kvm) struct Irqchip {
    chip_id: u32,
    padding: u32,
    chip: [u8; 512],
}

impl Argument for Irqchip {}

impl Irqchip {
    pub(in crate::kvm) fn first_pic() -> Self {
        Self { chip_id: 0, padding: 0, chip: [0; 512] }
    }

    /// Sets fields of `struct kvm_pic_state`: imr, irq_base, auto_eoi.
    pub(in crate::kvm) fn set_pic(&mut self, base: u8) {
        for (at, value) in [(2, 0), (5, base), (10, 1)] {
            if let Some(field) = self.chip.get_mut(at) {
                *field = value;
            }
        }
    }
}

/// `struct kvm_device_attr`.
#[repr(C)]
#[derive(Debug)]
pub(in crate::kvm) struct DeviceAttribute {
    flags: u32,
    group: u32,
    attr: u64,
    addr: u64,
}

impl Argument for DeviceAttribute {}

impl DeviceAttribute {
    /// `KVM_VCPU_TSC_CTRL`, `KVM_VCPU_TSC_OFFSET`; both are 0.
    pub(in crate::kvm) fn tsc_offset(addr: u64) -> Self {
        Self { flags: 0, group: 0, attr: 0, addr }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values that strace prints for these requests.
    #[test]
    fn requests_have_the_kernels_numbers() {
        assert_eq!(request::GET_SREGS.number, 0x8138_ae83);
        assert_eq!(request::SET_SREGS.number, 0x4138_ae84);
        assert_eq!(request::SET_REGS.number, 0x4090_ae82);
        assert_eq!(request::GET_SUPPORTED_CPUID.number, 0xc008_ae05);
        assert_eq!(request::SET_CPUID2.number, 0x4008_ae90);
        assert_eq!(request::GET_IRQCHIP.number, 0xc208_ae62);
        assert_eq!(request::SET_IRQCHIP.number, 0x8208_ae63);
        assert_eq!(request::GET_DEVICE_ATTR.number, 0x4018_aee2);
    }
}
