//! Stream sockets between a host and its guests (AF_VSOCK), which the standard library does not
//! support.
//!
//! Addresses are those of `include/uapi/linux/vm_sockets.h`: a context id (CID) for the machine and
//! a port, both 32 bits.

use std::fs::File;
use std::io::{self, Read, Write};
use std::mem;
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// VMADDR_CID_ANY: a listener accepts connections to all CIDs of the machine.
pub const CID_ANY: u32 = u32::MAX;
/// VMADDR_CID_LOCAL: this machine, if the kernel has the loopback transport.
pub const CID_LOCAL: u32 = 1;
/// VMADDR_CID_HOST: the machine that runs this one.
pub const CID_HOST: u32 = 2;
/// VMADDR_PORT_ANY: the kernel chooses a port for the listener.
pub const PORT_ANY: u32 = u32::MAX;

/// LAST_RESERVED_PORT of `net/vmw_vsock/af_vsock.c`: binding ports up to this one requires
/// CAP_NET_BIND_SERVICE, so the peer is not an ordinary user of its machine.
pub const LAST_PRIVILEGED_PORT: u32 = 1023;
/// The first port for outgoing connections; services listen on lower ones.
const FIRST_PRIVILEGED_PORT: u32 = 512;
/// Port of trace-cmd's agent.
const TRACE_CMD_PORT: u32 = 823;

/// IOCTL_VM_SOCKETS_GET_LOCAL_CID: `_IO(7, 0xb9)`.
const GET_LOCAL_CID: libc::Ioctl = 0x7b9;
/// SO_VM_SOCKETS_CONNECT_TIMEOUT, the variant with the C library's `timeval`.
const CONNECT_TIMEOUT: libc::c_int = 6;
/// Maximum connections that wait to be accepted.
const BACKLOG: libc::c_int = 128;

/// A machine and a port on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// The machine; [`CID_HOST`] is the host as seen by its guests.
    pub cid: u32,
    /// The port on that machine; listening on ports below 1024 requires privileges.
    pub port: u32,
}

/// A listening socket.
#[derive(Debug)]
pub struct Listener(OwnedFd);

/// A connection. Reads, writes, timeouts and shutdown work as in the standard library's streams.
///
/// The standard library's Unix stream calls `recv`, `send`, `shutdown` and the options of
/// SOL_SOCKET on its descriptor; these do not depend on the address family, so it can hold this
/// socket.
#[derive(Debug)]
pub struct Stream(UnixStream);

/// The CID that the host assigned to this machine.
///
/// # Errors
/// If there is no `/dev/vsock`, or no transport that assigns a CID.
pub fn local_cid() -> io::Result<u32> {
    let device = File::open("/dev/vsock")?;
    let mut cid = 0_u32;
    // SAFETY: the request writes one u32 to the address, which is that of a live u32.
    checked(unsafe { libc::ioctl(device.as_raw_fd(), GET_LOCAL_CID, &raw mut cid) })?;
    Ok(cid)
}

impl Listener {
    /// Listens on a port of this machine; [`PORT_ANY`] selects a free port.
    ///
    /// # Errors
    /// If the kernel does not support these sockets, or if the port is in use or requires
    /// privileges.
    pub fn bind(port: u32) -> io::Result<Self> {
        let socket = socket(0)?;
        bind(socket.as_fd(), port)?;
        // SAFETY: listen takes no pointer.
        checked(unsafe { libc::listen(socket.as_raw_fd(), BACKLOG) })?;
        Ok(Self(socket))
    }

    /// Waits for a connection, and returns it with its peer. The peer's CID comes from the
    /// hypervisor.
    ///
    /// # Errors
    /// Those of `accept`; [`io::ErrorKind::WouldBlock`] if the descriptor is non-blocking.
    pub fn accept(&self) -> io::Result<(Stream, Address)> {
        let mut address = to_kernel(Address { cid: 0, port: 0 });
        let mut bytes = ADDRESS_BYTES;
        let accepted = loop {
            // SAFETY: the kernel writes at most `bytes` bytes to the address, which has that many.
            let accepted = checked(unsafe {
                libc::accept4(
                    self.0.as_raw_fd(),
                    (&raw mut address).cast(),
                    &raw mut bytes,
                    libc::SOCK_CLOEXEC,
                )
            });
            match accepted {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        // SAFETY: the kernel has just created this descriptor, so it has no other owner.
        let socket = unsafe { OwnedFd::from_raw_fd(accepted) };
        Ok((Stream(socket.into()), from_kernel(&address)))
    }

    /// Its address, with the port that the kernel chose for [`PORT_ANY`].
    ///
    /// # Errors
    /// Those of `getsockname`.
    pub fn address(&self) -> io::Result<Address> {
        address_by(libc::getsockname, self.0.as_fd())
    }
}

impl Stream {
    /// Connects to a port of another machine, with a timeout.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`]; [`io::ErrorKind::ConnectionReset`] if there is no listener;
    /// ENODEV if there is no machine with this CID.
    pub fn connect(to: Address, timeout: Duration) -> io::Result<Self> {
        Self::connect_by(socket(libc::SOCK_NONBLOCK)?, to, timeout)
    }

    /// Connects from a privileged port, which shows the other side that no ordinary user of this
    /// machine connects. A process without the privilege connects from any port.
    ///
    /// # Errors
    /// As for [`Stream::connect`]; [`io::ErrorKind::AddrInUse`] if no such port is free.
    pub fn connect_privileged(to: Address, timeout: Duration) -> io::Result<Self> {
        let socket = socket(libc::SOCK_NONBLOCK)?;
        match bind_privileged(socket.as_fd()) {
            Err(error) if error.kind() != io::ErrorKind::PermissionDenied => Err(error),
            _ => Self::connect_by(socket, to, timeout),
        }
    }

    fn connect_by(socket: OwnedFd, to: Address, timeout: Duration) -> io::Result<Self> {
        let end = Instant::now() + timeout;
        allow(socket.as_fd(), timeout)?;
        let address = to_kernel(to);
        // SAFETY: the address is a live sockaddr_vm, its size is given with it.
        let connected = checked(unsafe {
            libc::connect(socket.as_raw_fd(), (&raw const address).cast(), ADDRESS_BYTES)
        });
        let stream = Stream(socket.into());
        match connected {
            Ok(_) => {}
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {
                wait_until_writable(stream.as_fd(), end)?;
                if let Some(error) = stream.0.take_error()? {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
        stream.0.set_nonblocking(false)?;
        Ok(stream)
    }

    /// The peer of the connection. Its CID comes from the hypervisor, so a host can trust it.
    ///
    /// # Errors
    /// If the connection has ended.
    pub fn peer(&self) -> io::Result<Address> {
        address_by(libc::getpeername, self.0.as_fd())
    }

    /// A duplicate handle of the connection.
    ///
    /// # Errors
    /// If the process has no more descriptors.
    pub fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// Sets the timeout of reads, or none; a timeout fails with [`io::ErrorKind::WouldBlock`].
    ///
    /// # Errors
    /// For a timeout of zero.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.0.set_read_timeout(timeout)
    }

    /// Sets the timeout of writes, as [`Stream::set_read_timeout`].
    ///
    /// # Errors
    /// For a timeout of zero.
    pub fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.0.set_write_timeout(timeout)
    }

    /// Whether operations return [`io::ErrorKind::WouldBlock`] instead of waiting.
    ///
    /// # Errors
    /// None known.
    pub fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        self.0.set_nonblocking(on)
    }

    /// Shuts down one or both directions for all handles of the connection.
    ///
    /// # Errors
    /// If it has already ended.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.0.shutdown(how)
    }
}

impl Read for &Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&self.0).read(buffer)
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&self.0).read(buffer)
    }
}

impl Write for &Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&self.0).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&self.0).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<Stream> for OwnedFd {
    fn from(stream: Stream) -> Self {
        stream.0.into()
    }
}

impl From<Listener> for OwnedFd {
    fn from(listener: Listener) -> Self {
        listener.0
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the struct has 16 bytes")]
const ADDRESS_BYTES: libc::socklen_t = size_of::<libc::sockaddr_vm>() as libc::socklen_t;

fn to_kernel(address: Address) -> libc::sockaddr_vm {
    // SAFETY: the struct has only integers, for which zero is valid; unnamed fields must be zero.
    let mut kernel: libc::sockaddr_vm = unsafe { mem::zeroed() };
    #[expect(clippy::cast_possible_truncation, reason = "the constant is 40")]
    let family = libc::AF_VSOCK as libc::sa_family_t;
    kernel.svm_family = family;
    kernel.svm_cid = address.cid;
    kernel.svm_port = address.port;
    kernel
}

fn from_kernel(kernel: &libc::sockaddr_vm) -> Address {
    Address { cid: kernel.svm_cid, port: kernel.svm_port }
}

/// `getsockname` or `getpeername`.
type AskAddress =
    unsafe extern "C" fn(libc::c_int, *mut libc::sockaddr, *mut libc::socklen_t) -> libc::c_int;

fn address_by(ask: AskAddress, socket: BorrowedFd<'_>) -> io::Result<Address> {
    kernel_address_by(ask, socket).map(|address| from_kernel(&address))
}

fn kernel_address_by(ask: AskAddress, socket: BorrowedFd<'_>) -> io::Result<libc::sockaddr_vm> {
    let mut address = to_kernel(Address { cid: 0, port: 0 });
    let mut bytes = ADDRESS_BYTES;
    // SAFETY: the kernel writes at most `bytes` bytes to the address, which has that many.
    checked(unsafe { ask(socket.as_raw_fd(), (&raw mut address).cast(), &raw mut bytes) })?;
    Ok(address)
}

fn socket(flags: libc::c_int) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | flags;
    // SAFETY: socket takes no pointer.
    let socket = checked(unsafe { libc::socket(libc::AF_VSOCK, kind, 0) })?;
    // SAFETY: the kernel has just created this descriptor, so it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(socket) })
}

fn bind(socket: BorrowedFd<'_>, port: u32) -> io::Result<()> {
    let address = to_kernel(Address { cid: CID_ANY, port });
    // SAFETY: the address is a live sockaddr_vm, its size is given with it.
    checked(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), ADDRESS_BYTES) })?;
    Ok(())
}

/// Binds the highest free privileged port.
fn bind_privileged(socket: BorrowedFd<'_>) -> io::Result<()> {
    let ports = (FIRST_PRIVILEGED_PORT..=LAST_PRIVILEGED_PORT).rev();
    for port in ports.filter(|&port| port != TRACE_CMD_PORT) {
        match bind(socket, port) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            other => return other,
        }
    }
    Err(io::ErrorKind::AddrInUse.into())
}

/// The peer of a vsock connection; `None` for other sockets.
#[must_use]
pub fn peer_of(socket: BorrowedFd<'_>) -> Option<Address> {
    let kernel = kernel_address_by(libc::getpeername, socket).ok()?;
    (libc::c_int::from(kernel.svm_family) == libc::AF_VSOCK).then(|| from_kernel(&kernel))
}

/// Extends the kernel's own connection timeout of two seconds to the caller's.
fn allow(socket: BorrowedFd<'_>, timeout: Duration) -> io::Result<()> {
    let time = libc::timeval {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        // At least one is not zero: the kernel treats zero as its default of two seconds.
        tv_usec: i64::from(timeout.subsec_micros()).max(1),
    };
    #[expect(clippy::cast_possible_truncation, reason = "the struct has 16 bytes")]
    let bytes = size_of::<libc::timeval>() as libc::socklen_t;
    // SAFETY: the kernel reads `bytes` bytes from a live timeval, which has that many.
    checked(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::AF_VSOCK,
            CONNECT_TIMEOUT,
            (&raw const time).cast(),
            bytes,
        )
    })?;
    Ok(())
}

fn wait_until_writable(socket: BorrowedFd<'_>, end: Instant) -> io::Result<()> {
    loop {
        let remaining = end.saturating_duration_since(Instant::now());
        let left_ms = libc::c_int::try_from(remaining.as_millis()).unwrap_or(libc::c_int::MAX);
        let mut fd = libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
        // SAFETY: one live pollfd is given, and their number is 1.
        match checked(unsafe { libc::poll(&raw mut fd, 1, left_ms) }) {
            Ok(0) if remaining.is_zero() => return Err(io::ErrorKind::TimedOut.into()),
            Ok(0) => {}
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

#[cfg(test)]
mod tests;
