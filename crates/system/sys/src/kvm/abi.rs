//! Structures and requests of `/dev/kvm`, as `include/uapi/linux/kvm.h` and `asm/kvm.h` lay them out.

use std::marker::PhantomData;
use std::os::raw::{c_int, c_ulong};

/// What a request may be given: structures of integers, of which any bytes are a value.
pub(super) trait Argument {}

/// A request for which the kernel reads or writes a `T`.
#[derive(Debug)]
pub(super) struct Request<T> {
    pub(super) number: c_ulong,
    argument: PhantomData<T>,
}

impl<T> Request<T> {
    /// `direction` is 1 where the kernel reads, 2 where it writes, 3 for both; `bytes` what the number
    /// holds as the size.
    const fn new(direction: c_ulong, number: c_ulong, bytes: usize) -> Self {
        let number = direction << 30 | (bytes as c_ulong) << 16 | KVMIO << 8 | number;
        Self { number, argument: PhantomData }
    }

    const fn of(direction: c_ulong, number: c_ulong) -> Self {
        Self::new(direction, number, size_of::<T>())
    }
}

const KVMIO: c_ulong = 0xae;

/// Requests. Those that are plain numbers take no structure.
pub(super) mod request {
    use super::{
        Cpuid, DeviceAttribute, Ioeventfd, Irqchip, Irqfd, KVMIO, MemoryRegion, Registers, Request,
        SpecialRegisters, c_ulong,
    };

    const fn plain(number: c_ulong) -> c_ulong {
        KVMIO << 8 | number
    }

    pub(in super::super) const GET_API_VERSION: c_ulong = plain(0x00);
    pub(in super::super) const CREATE_VM: c_ulong = plain(0x01);
    pub(in super::super) const GET_VCPU_MMAP_SIZE: c_ulong = plain(0x04);
    pub(in super::super) const CREATE_VCPU: c_ulong = plain(0x41);
    pub(in super::super) const CREATE_IRQCHIP: c_ulong = plain(0x60);
    pub(in super::super) const RUN: c_ulong = plain(0x80);
    pub(in super::super) const GET_STATS_FD: c_ulong = plain(0xce);
    // The size in these two is that of the table's head.
    pub(in super::super) const GET_SUPPORTED_CPUID: Request<Cpuid> = Request::new(3, 0x05, 8);
    pub(in super::super) const SET_CPUID2: Request<Cpuid> = Request::new(1, 0x90, 8);
    pub(in super::super) const SET_USER_MEMORY_REGION: Request<MemoryRegion> = Request::of(1, 0x46);
    pub(in super::super) const GET_IRQCHIP: Request<Irqchip> = Request::of(3, 0x62);
    pub(in super::super) const SET_IRQCHIP: Request<Irqchip> = Request::of(2, 0x63);
    pub(in super::super) const IRQFD: Request<Irqfd> = Request::of(1, 0x76);
    pub(in super::super) const IOEVENTFD: Request<Ioeventfd> = Request::of(1, 0x79);
    pub(in super::super) const SET_REGS: Request<Registers> = Request::of(1, 0x82);
    pub(in super::super) const GET_SREGS: Request<SpecialRegisters> = Request::of(2, 0x83);
    pub(in super::super) const SET_SREGS: Request<SpecialRegisters> = Request::of(1, 0x84);
    pub(in super::super) const INTERRUPT: Request<u32> = Request::of(1, 0x86);
    pub(in super::super) const GET_DEVICE_ATTR: Request<DeviceAttribute> = Request::of(1, 0xe2);
}

/// Bytes of `struct kvm_run` that are looked at.
pub(super) const RUN_BYTES: usize = 64;
/// `exit_reason`.
pub(super) const RUN_REASON: usize = 8;
/// `io.port`.
pub(super) const RUN_PORT: usize = 34;
/// `mmio.phys_addr`.
pub(super) const RUN_ADDRESS: usize = 32;
pub(super) const EXIT_IO: u32 = 2;
pub(super) const EXIT_HLT: u32 = 5;
pub(super) const EXIT_MMIO: u32 = 6;
/// `KVM_IOEVENTFD_FLAG_PIO`.
pub(super) const IOEVENTFD_IS_PORT: u32 = 2;

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

/// `struct kvm_dtable`: where descriptors are.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Table {
    /// The first one's address.
    pub base: u64,
    /// The last byte's distance from it.
    pub limit: u16,
    /// Nothing.
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

/// `struct kvm_userspace_memory_region`, slot 0, from address 0.
#[repr(C)]
#[derive(Debug)]
pub(super) struct MemoryRegion {
    slot: u32,
    flags: u32,
    guest_phys_addr: u64,
    memory_size: u64,
    userspace_addr: u64,
}

impl Argument for MemoryRegion {}

impl MemoryRegion {
    pub(super) fn new(memory_size: u64, userspace_addr: u64) -> Self {
        Self { slot: 0, flags: 0, guest_phys_addr: 0, memory_size, userspace_addr }
    }
}

/// Entries that a table of [`Cpuid`] has room for; KVM of Linux 6.18 gives some sixty.
const CPUID_ENTRIES: usize = 256;

/// `struct kvm_cpuid2` with its entries, of ten words each.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Cpuid {
    count: u32,
    padding: u32,
    entries: [[u32; 10]; CPUID_ENTRIES],
}

impl Argument for Cpuid {}

impl Cpuid {
    pub(super) fn empty() -> Box<Self> {
        let entries = [[0; 10]; CPUID_ENTRIES];
        Box::new(Self { count: CPUID_ENTRIES as u32, padding: 0, entries })
    }
}

/// `struct kvm_irqfd`.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Irqfd {
    fd: u32,
    gsi: u32,
    flags: u32,
    resamplefd: u32,
    padding: [u8; 16],
}

impl Argument for Irqfd {}

impl Irqfd {
    pub(super) fn new(fd: c_int, gsi: u32) -> Self {
        Self { fd: fd.cast_unsigned(), gsi, flags: 0, resamplefd: 0, padding: [0; 16] }
    }
}

/// `struct kvm_ioeventfd`.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Ioeventfd {
    datamatch: u64,
    addr: u64,
    len: u32,
    fd: i32,
    flags: u32,
    padding: [u8; 36],
}

impl Argument for Ioeventfd {}

impl Ioeventfd {
    pub(super) fn new(addr: u64, len: u32, fd: c_int, flags: u32) -> Self {
        Self { datamatch: 0, addr, len, fd, flags, padding: [0; 36] }
    }
}

/// `struct kvm_irqchip`.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Irqchip {
    chip_id: u32,
    padding: u32,
    chip: [u8; 512],
}

impl Argument for Irqchip {}

impl Irqchip {
    pub(super) fn first_pic() -> Self {
        Self { chip_id: 0, padding: 0, chip: [0; 512] }
    }

    /// Sets fields of `struct kvm_pic_state`: imr, irq_base, auto_eoi.
    pub(super) fn set_pic(&mut self, base: u8) {
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
pub(super) struct DeviceAttribute {
    flags: u32,
    group: u32,
    attr: u64,
    addr: u64,
}

impl Argument for DeviceAttribute {}

impl DeviceAttribute {
    /// `KVM_VCPU_TSC_CTRL`, `KVM_VCPU_TSC_OFFSET`; both are 0.
    pub(super) fn tsc_offset(addr: u64) -> Self {
        Self { flags: 0, group: 0, attr: 0, addr }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values that strace prints for these requests on x86-64.
    #[test]
    fn requests_have_the_kernels_numbers() {
        assert_eq!(request::GET_SREGS.number, 0x8138_ae83);
        assert_eq!(request::SET_SREGS.number, 0x4138_ae84);
        assert_eq!(request::SET_REGS.number, 0x4090_ae82);
        assert_eq!(request::SET_USER_MEMORY_REGION.number, 0x4020_ae46);
        assert_eq!(request::GET_SUPPORTED_CPUID.number, 0xc008_ae05);
        assert_eq!(request::SET_CPUID2.number, 0x4008_ae90);
        assert_eq!(request::IRQFD.number, 0x4020_ae76);
        assert_eq!(request::IOEVENTFD.number, 0x4040_ae79);
        assert_eq!(request::GET_IRQCHIP.number, 0xc208_ae62);
        assert_eq!(request::SET_IRQCHIP.number, 0x8208_ae63);
        assert_eq!(request::GET_DEVICE_ATTR.number, 0x4018_aee2);
        assert_eq!(request::RUN, 0xae80);
    }
}
