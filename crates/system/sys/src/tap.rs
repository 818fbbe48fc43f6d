//! A network device of this system whose wire is a file.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::raw::{c_int, c_ulong};

/// `TUNSETIFF` of `include/uapi/linux/if_tun.h`.
const TUNSETIFF: c_ulong = 0x4004_54ca;
/// `IFF_TAP | IFF_NO_PI | IFF_VNET_HDR` of the same.
const ETHERNET: u16 = 0x0002 | 0x1000 | 0x4000;
/// `IFF_UP` of `include/uapi/linux/if.h`.
const UP: u16 = 1;
/// What the kernel fills in: the first number that is free.
const NAME: &[u8] = b"hyperscope%d";

/// `struct ifreq`, as these requests use it.
#[repr(C)]
struct Request {
    name: [u8; 16],
    flags: u16,
    others: [u8; 22],
}

/// The device. It is gone when this is dropped.
#[derive(Debug)]
pub struct Tap(File);

impl Tap {
    /// Makes one, and sets it up. Each frame on its wire begins with ten bytes that say what is left to
    /// be done for it (`struct virtio_net_hdr`).
    ///
    /// # Errors
    /// When the kernel has none, or this process may not make them.
    pub fn make() -> io::Result<Self> {
        const DEVICE: &str = "/dev/net/tun";
        let file = OpenOptions::new().read(true).write(true).open(DEVICE);
        let file = file.map_err(|error| named(DEVICE, &error))?;
        let mut request = Request { name: [0; 16], flags: ETHERNET, others: [0; 22] };
        for (to, from) in request.name.iter_mut().zip(NAME) {
            *to = *from;
        }
        ask(file.as_fd(), TUNSETIFF, &mut request).map_err(|error| named("TUNSETIFF", &error))?;
        set_up(&mut request).map_err(|error| named("SIOCSIFFLAGS", &error))?;
        Ok(Self(file))
    }

    /// The same device once more.
    ///
    /// # Errors
    /// When there are no descriptors left.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self(self.0.try_clone()?))
    }

    /// Puts a frame on the wire.
    ///
    /// # Errors
    /// When the kernel doesn't take it.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        (&self.0).write(frame).map(drop)
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Sets the device up that a request names.
fn set_up(request: &mut Request) -> io::Result<()> {
    // SAFETY: the arguments are constants, and none of this process's memory is touched.
    let socket = checked(unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM, 0) })?;
    // SAFETY: the kernel has just made this descriptor, and nobody else knows of it.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    request.flags = UP;
    ask(socket.as_fd(), libc::SIOCSIFFLAGS as c_ulong, request)
}

fn ask(fd: BorrowedFd<'_>, request: c_ulong, argument: &mut Request) -> io::Result<()> {
    // SAFETY: both requests read and write a `struct ifreq`, which `Request` is as long as.
    checked(unsafe { libc::ioctl(fd.as_raw_fd(), request as _, std::ptr::from_mut(argument)) })
        .map(drop)
}

fn checked(answer: c_int) -> io::Result<c_int> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

fn named(what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

const _: () = assert!(size_of::<Request>() == 40);
