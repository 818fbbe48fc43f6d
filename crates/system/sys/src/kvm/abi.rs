//! Structures and requests of `/dev/kvm`, as in `include/uapi/linux/kvm.h` and `asm/kvm.h`.

#[cfg(any(test, target_arch = "aarch64"))]
#[cfg_attr(
    not(target_arch = "aarch64"),
    allow(dead_code, reason = "numbers are tested everywhere")
)]
pub(super) mod arm64;
#[cfg(target_arch = "x86_64")]
pub(super) mod x86;

use std::marker::PhantomData;
use std::os::raw::{c_int, c_ulong};

/// Argument types of requests: structures of integers, for which any bytes are valid.
pub(super) trait Argument {}

/// A request for which the kernel reads or writes a `T`.
#[derive(Debug)]
pub(super) struct Request<T> {
    pub(super) number: c_ulong,
    argument: PhantomData<T>,
}

impl<T> Request<T> {
    /// `direction` is 1 if the kernel reads, 2 if it writes, 3 for both; `bytes` is the size
    /// encoded in the number.
    const fn new(direction: c_ulong, number: c_ulong, bytes: usize) -> Self {
        let number = direction << 30 | (bytes as c_ulong) << 16 | KVMIO << 8 | number;
        Self { number, argument: PhantomData }
    }

    const fn for_argument(direction: c_ulong, number: c_ulong) -> Self {
        Self::new(direction, number, size_of::<T>())
    }
}

const KVMIO: c_ulong = 0xae;

/// Requests. Plain numbers have no structure.
pub(super) mod request {
    use super::{Ioeventfd, Irqfd, KVMIO, MemoryRegion, Request, c_ulong};

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
    pub(in super::super) const SET_USER_MEMORY_REGION: Request<MemoryRegion> =
        Request::for_argument(1, 0x46);
    pub(in super::super) const IRQFD: Request<Irqfd> = Request::for_argument(1, 0x76);
    pub(in super::super) const IOEVENTFD: Request<Ioeventfd> = Request::for_argument(1, 0x79);
}

/// Size of the used part of `struct kvm_run`.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Values that strace prints for these requests.
    #[test]
    fn requests_have_the_kernels_numbers() {
        assert_eq!(request::SET_USER_MEMORY_REGION.number, 0x4020_ae46);
        assert_eq!(request::IRQFD.number, 0x4020_ae76);
        assert_eq!(request::IOEVENTFD.number, 0x4040_ae79);
        assert_eq!(request::RUN, 0xae80);
    }
}
