//! The kernel's vhost-net: one of its worker threads processes a guest's transmit queue.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::raw::{c_int, c_uint, c_ulong};

use memmap2::MmapMut;

use super::KvmError;

/// A virtqueue in the machine's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Number of descriptors: a power of 2.
    pub length: u16,
    /// Address of the descriptor table.
    pub descriptors: u64,
    /// Address of the available ring, which the guest writes.
    pub available: u64,
    /// Address of the used ring, which the device writes.
    pub used: u64,
}

/// Maximum descriptors of a queue.
const MAX_DESCRIPTORS: u16 = 1 << 15;

impl Queue {
    /// Checks that the queue is inside memory of `bytes` bytes from address 0, with the alignment
    /// of the standard. The kernel would accept any address of this process.
    fn check(&self, memory_bytes: usize) -> Result<(), KvmError> {
        let count = u64::from(self.length);
        let is_in = |at: u64, align: u64, bytes: u64| {
            at.is_multiple_of(align)
                && at.checked_add(bytes).is_some_and(|end| end <= memory_bytes as u64)
        };
        let is_sound = self.length.is_power_of_two()
            && self.length <= MAX_DESCRIPTORS
            && is_in(self.descriptors, 16, 16 * count)
            && is_in(self.available, 2, 6 + 2 * count)
            && is_in(self.used, 4, 6 + 8 * count);
        if is_sound {
            return Ok(());
        }
        let source = io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{self:?} does not lie in {memory_bytes} bytes of memory"),
        );
        Err(KvmError { call: "a queue for vhost-net", source })
    }
}

/// Index of a network device's transmit queue.
const SENDS: c_uint = 1;

const SET_OWNER: c_ulong = 0xaf01;

/// A structure that a request of `include/uapi/linux/vhost.h` reads: only integers.
trait Argument {
    const CALL: &str;
    /// The request number, including the size of the structure.
    const REQUEST: c_ulong;
}

const fn reads(number: c_ulong, bytes: usize) -> c_ulong {
    1 << 30 | (bytes as c_ulong) << 16 | 0xaf00 | number
}

/// `struct vhost_memory` with one region.
#[repr(C)]
struct Memory {
    count: u32,
    padding: u32,
    guest: u64,
    bytes: u64,
    userspace: u64,
    flags: u64,
}

impl Argument for Memory {
    const CALL: &str = "VHOST_SET_MEM_TABLE";
    // The size of its header.
    const REQUEST: c_ulong = reads(0x03, 8);
}

/// `struct vhost_vring_state`.
#[repr(C)]
struct Length {
    index: c_uint,
    length: c_uint,
}

impl Argument for Length {
    const CALL: &str = "VHOST_SET_VRING_NUM";
    const REQUEST: c_ulong = reads(0x10, size_of::<Self>());
}

/// `struct vhost_vring_addr`.
#[repr(C)]
struct Addresses {
    index: c_uint,
    flags: c_uint,
    descriptors: u64,
    used: u64,
    available: u64,
    log: u64,
}

impl Argument for Addresses {
    const CALL: &str = "VHOST_SET_VRING_ADDR";
    const REQUEST: c_ulong = reads(0x11, size_of::<Self>());
}

/// `struct vhost_vring_file`, for a request of this number.
#[repr(C)]
struct Descriptor<const NUMBER: c_ulong> {
    index: c_uint,
    fd: c_int,
}

impl<const NUMBER: c_ulong> Argument for Descriptor<NUMBER> {
    const CALL: &str = match NUMBER {
        0x20 => "VHOST_SET_VRING_KICK",
        0x21 => "VHOST_SET_VRING_CALL",
        _ => "VHOST_NET_SET_BACKEND",
    };
    const REQUEST: c_ulong = reads(NUMBER, size_of::<Self>());
}

/// A vhost-net instance; its worker ends on drop.
#[derive(Debug)]
pub(super) struct VhostNet {
    _device: File,
}

impl VhostNet {
    /// Serves a queue in memory: when `rings` is signalled, frames go to the tap; `call` is
    /// signalled when they have been sent.
    ///
    /// # Safety
    ///
    /// The memory must stay mapped until the server is dropped, without references to it meanwhile:
    /// the kernel's worker reads and writes it at any time.
    ///
    /// # Errors
    /// If the queue is not in the memory, if there is no vhost-net, or if it refuses.
    pub(super) unsafe fn start(
        memory: &mut MmapMut,
        queue: Queue,
        tap: BorrowedFd<'_>,
        rings: BorrowedFd<'_>,
        call: BorrowedFd<'_>,
    ) -> Result<Self, KvmError> {
        queue.check(memory.len())?;
        let (userspace, bytes) = (memory.as_mut_ptr() as u64, memory.len() as u64);
        let failed = |call| move |source| KvmError { call, source };
        let device = OpenOptions::new().read(true).write(true).open("/dev/vhost-net");
        let device = device.map_err(failed("open /dev/vhost-net"))?;
        // SAFETY: this request has no argument, and accesses no memory of this process.
        let owned = unsafe { libc::ioctl(device.as_raw_fd(), SET_OWNER as _) };
        if owned < 0 {
            return Err(failed("VHOST_SET_OWNER")(io::Error::last_os_error()));
        }
        ask(&device, &Memory { count: 1, padding: 0, guest: 0, bytes, userspace, flags: 0 })?;
        ask(&device, &Length { index: SENDS, length: queue.length.into() })?;
        ask(
            &device,
            &Addresses {
                index: SENDS,
                flags: 0,
                descriptors: userspace + queue.descriptors,
                used: userspace + queue.used,
                available: userspace + queue.available,
                log: 0,
            },
        )?;
        ask(&device, &Descriptor::<0x21> { index: SENDS, fd: call.as_raw_fd() })?;
        ask(&device, &Descriptor::<0x20> { index: SENDS, fd: rings.as_raw_fd() })?;
        ask(&device, &Descriptor::<0x30> { index: SENDS, fd: tap.as_raw_fd() })?;
        Ok(Self { _device: device })
    }
}

fn ask<T: Argument>(device: &File, argument: &T) -> Result<(), KvmError> {
    // SAFETY: the request reads a `T`, only during the call; addresses in it are inside the memory
    // that `start` received, and which its owner does not access meanwhile.
    let answer =
        unsafe { libc::ioctl(device.as_raw_fd(), T::REQUEST as _, std::ptr::from_ref(argument)) };
    if answer < 0 {
        return Err(KvmError { call: T::CALL, source: io::Error::last_os_error() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_lies_in_its_memory() {
        let sound = Queue { length: 256, descriptors: 0x1000, available: 0x2000, used: 0x3000 };
        assert!(sound.check(0x3000 + 6 + 8 * 256).is_ok());
        for wrong in [
            Queue { length: 0, ..sound },
            Queue { length: 3, ..sound },
            Queue { descriptors: 0x1001, ..sound },
            Queue { descriptors: 0xffff_ffff_ffff_fff0, ..sound },
            Queue { available: 0x1_0000, ..sound },
            Queue { used: 0x3004, ..sound },
        ] {
            let error = wrong.check(0x3000 + 6 + 8 * 256).unwrap_err();
            assert_eq!(error.source.kind(), io::ErrorKind::InvalidInput, "{wrong:?}");
        }
    }
}
