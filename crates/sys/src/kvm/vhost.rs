//! The kernel's own server of a network device: a worker of its takes what the guest sends.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::raw::{c_int, c_uint, c_ulong};

use super::KvmError;

/// A queue of a virtio device, in the machine's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// How many descriptors it has: a power of 2.
    pub length: u16,
    /// Where they are.
    pub descriptors: u64,
    /// Where the guest says which of them are to be used.
    pub available: u64,
    /// Where the server says which of them it has used.
    pub used: u64,
}

/// The queue of a network device by which it sends.
const SENDS: c_uint = 1;

const SET_OWNER: c_ulong = 0xaf01;

/// A structure that a request of `include/uapi/linux/vhost.h` reads: integers alone.
trait Argument {
    const CALL: &str;
    /// The number of the request, with the bytes that it says it reads.
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
    own: u64,
    flags: u64,
}

impl Argument for Memory {
    const CALL: &str = "VHOST_SET_MEM_TABLE";
    // That of its head.
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

/// The server; its worker ends when this is dropped.
#[derive(Debug)]
pub(super) struct VhostNet {
    _device: File,
}

impl VhostNet {
    /// Serves a queue in memory that is the kernel's as long as the server lives: what is in it goes to
    /// the tap, when the doorbell rings, and `tells` does when it has gone.
    pub(super) fn start(
        (own, bytes): (u64, u64),
        queue: Queue,
        tap: BorrowedFd<'_>,
        rings: BorrowedFd<'_>,
        tells: BorrowedFd<'_>,
    ) -> Result<Self, KvmError> {
        let failed = |call| move |source| KvmError { call, source };
        let device = OpenOptions::new().read(true).write(true).open("/dev/vhost-net");
        let device = device.map_err(failed("open /dev/vhost-net"))?;
        // SAFETY: this request takes nothing, and touches none of this process's memory.
        let owned = unsafe { libc::ioctl(device.as_raw_fd(), SET_OWNER as _) };
        if owned < 0 {
            return Err(failed("VHOST_SET_OWNER")(io::Error::last_os_error()));
        }
        ask(&device, &Memory { count: 1, padding: 0, guest: 0, bytes, own, flags: 0 })?;
        ask(&device, &Length { index: SENDS, length: queue.length.into() })?;
        ask(
            &device,
            &Addresses {
                index: SENDS,
                flags: 0,
                descriptors: own + queue.descriptors,
                used: own + queue.used,
                available: own + queue.available,
                log: 0,
            },
        )?;
        ask(&device, &Descriptor::<0x21> { index: SENDS, fd: tells.as_raw_fd() })?;
        ask(&device, &Descriptor::<0x20> { index: SENDS, fd: rings.as_raw_fd() })?;
        ask(&device, &Descriptor::<0x30> { index: SENDS, fd: tap.as_raw_fd() })?;
        Ok(Self { _device: device })
    }
}

fn ask<T: Argument>(device: &File, argument: &T) -> Result<(), KvmError> {
    // SAFETY: the request is the one that reads a `T`, within the call; addresses in it are of memory
    // that its owner leaves to the kernel.
    let answer =
        unsafe { libc::ioctl(device.as_raw_fd(), T::REQUEST as _, std::ptr::from_ref(argument)) };
    if answer < 0 {
        return Err(KvmError { call: T::CALL, source: io::Error::last_os_error() });
    }
    Ok(())
}
