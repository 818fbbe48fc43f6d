//! A network device (tap) of this system whose frames are read and written through a file.

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
/// A name pattern: the kernel inserts the first free number.
const NAME: &[u8] = b"hyperscope%d";

/// `struct ifreq`, as these requests use it.
#[repr(C)]
struct Request {
    name: [u8; 16],
    flags: u16,
    others: [u8; 22],
}

/// The device, which is removed on drop.
#[derive(Debug)]
pub struct Tap(File);

impl Tap {
    /// Creates a tap, and sets it up. Each frame begins with a ten-byte `struct virtio_net_hdr`.
    ///
    /// # Errors
    /// If the kernel does not support taps, or if this process may not create them.
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

    /// A duplicate handle of the device.
    ///
    /// # Errors
    /// If there are no descriptors left.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self(self.0.try_clone()?))
    }

    /// Sends a frame.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        (&self.0).write(frame).map(drop)
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Sets up the device named in a request.
fn set_up(request: &mut Request) -> io::Result<()> {
    // SAFETY: the arguments are constants, and none of this process's memory is touched.
    let socket = checked(unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM, 0) })?;
    // SAFETY: the kernel has just created this descriptor, so it has no other owner.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    request.flags = UP;
    ask(socket.as_fd(), libc::SIOCSIFFLAGS as c_ulong, request)
}

fn ask(fd: BorrowedFd<'_>, request: c_ulong, argument: &mut Request) -> io::Result<()> {
    // SAFETY: both requests read and write a `struct ifreq`, which has the size of `Request`.
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
