//! Listening sockets, and connections to them.

use std::fs;
use std::io;
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, fchmod};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with,
};
use sys::vsock;

use crate::address::{AgentAddress, HostAddress};
use crate::peer::Peer;
use crate::ports;
use crate::stream::Stream;
use crate::tls::{self, Acceptor, Keys};

/// Max connections not accepted yet, as for the standard library's listeners.
const BACKLOG: i32 = 128;

/// A listening socket.
#[derive(Debug)]
pub enum Listener {
    /// Accepts machines of this hypervisor.
    Vsock(vsock::Listener),
    /// Accepts machines of this hypervisor that authenticate.
    TlsVsock(vsock::Listener, Acceptor),
    /// Accepts any machine that can reach it.
    Tcp(TcpListener),
    /// Accepts machines that can reach it and authenticate.
    Tls(TcpListener, Acceptor),
    /// Accepts processes of this machine.
    Unix(UnixListener),
}

impl Listener {
    /// Listens for vsock connections.
    ///
    /// # Errors
    /// When the kernel has no vsock, or the port is taken.
    pub fn vsock(port: u32) -> io::Result<Self> {
        Ok(Self::Vsock(vsock::Listener::bind(port)?))
    }

    /// Listens for TCP connections.
    ///
    /// # Errors
    /// When the address does not belong to this machine, or the port is taken.
    pub fn tcp(at: &str) -> io::Result<Self> {
        Ok(Self::Tcp(TcpListener::bind(at)?))
    }

    /// Listens on a Unix socket; replaces a stale one.
    ///
    /// # Errors
    /// When the socket can't be made.
    pub fn unix(path: &Path) -> io::Result<Self> {
        if ports::connect(path).is_err_and(|e| e.kind() == io::ErrorKind::ConnectionRefused) {
            fs::remove_file(path)?;
        }
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        // A client may record this machine. The file gets the socket's permissions (unix_bind_bsd() of
        // net/unix/af_unix.c), so it is never open to others.
        fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
        bind(&socket, &SocketAddrUnix::new(path)?)?;
        listen(&socket, BACKLOG)?;
        Ok(Self::Unix(socket.into()))
    }

    /// Listens at an agent's address; `None` if the agent does not listen.
    ///
    /// # Errors
    /// Those of the functions above.
    pub fn for_address(address: &AgentAddress) -> io::Result<Option<Self>> {
        Ok(Some(match address {
            AgentAddress::Vsock { port } => Self::vsock(*port)?,
            AgentAddress::TlsVsock { port, keys } => {
                let keys = Keys::read(&keys.identity, &keys.peers)?;
                Self::TlsVsock(vsock::Listener::bind(*port)?, keys.server()?)
            }
            AgentAddress::Tcp { at } => Self::tcp(at)?,
            AgentAddress::Tls { at, keys } => {
                let keys = Keys::read(&keys.identity, &keys.peers)?;
                Self::Tls(TcpListener::bind(at)?, keys.server()?)
            }
            AgentAddress::Unix { path } => Self::unix(path)?,
            AgentAddress::SharedMemory { .. }
            | AgentAddress::VirtioSerial
            | AgentAddress::Connect(_) => return Ok(None),
        }))
    }

    /// Whether peers must authenticate with known keys before any message is read.
    #[must_use]
    pub fn demands_keys(&self) -> bool {
        matches!(self, Self::Tls(..) | Self::TlsVsock(..))
    }

    /// Waits for a connection. Over TLS, the stream learns the peer's identity later: see [`Stream::certificate`].
    ///
    /// # Errors
    /// An error of the system.
    pub fn accept(&self) -> io::Result<(Stream, Peer)> {
        Ok(match self {
            Self::Vsock(listener) => {
                let (socket, from) = listener.accept()?;
                (Stream::new(socket)?, Peer::Vsock(from.cid))
            }
            Self::TlsVsock(listener, acceptor) => {
                let (socket, from) = listener.accept()?;
                (acceptor.accept(socket_of(socket))?, Peer::Vsock(from.cid))
            }
            Self::Tcp(listener) => {
                let (socket, from) = listener.accept()?;
                socket.set_nodelay(true)?;
                (Stream::new(socket)?, Peer::Tcp(from.ip()))
            }
            Self::Tls(listener, acceptor) => {
                let (socket, from) = listener.accept()?;
                socket.set_nodelay(true)?;
                let stream = acceptor.accept(socket)?;
                (stream, Peer::Tcp(from.ip()))
            }
            Self::Unix(listener) => (Stream::new(listener.accept()?.0)?, Peer::Unix),
        })
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Vsock(listener) | Self::TlsVsock(listener, _) => listener.as_fd(),
            Self::Tcp(listener) | Self::Tls(listener, _) => listener.as_fd(),
            Self::Unix(listener) => listener.as_fd(),
        }
    }
}

impl HostAddress {
    /// Connects to the listening side. Shared memory has no listener: see [`crate::HostMemory`].
    ///
    /// # Errors
    /// When nothing listens there in time; the message includes the address.
    pub fn connect(&self, timeout: Duration) -> io::Result<Stream> {
        self.connect_by(timeout, vsock::Stream::connect)
    }

    /// [`HostAddress::connect`] for a control stream. Agents accept control streams over vsock only from privileged
    /// ports, so that unprivileged users of the host can't control them.
    ///
    /// # Errors
    /// As [`HostAddress::connect`].
    pub fn connect_control(&self, timeout: Duration) -> io::Result<Stream> {
        self.connect_by(timeout, vsock::Stream::connect_privileged)
    }

    fn connect_by(&self, timeout: Duration, by_vsock: ConnectVsock) -> io::Result<Stream> {
        let stream = match self {
            Self::Vsock { cid, port } => {
                let to = vsock::Address { cid: *cid, port: *port };
                by_vsock(to, timeout).and_then(Stream::new)
            }
            Self::TlsVsock { cid, port, keys } => {
                let to = vsock::Address { cid: *cid, port: *port };
                Keys::read(&keys.identity, &keys.peers).and_then(|keys| {
                    tls::connect(socket_of(by_vsock(to, timeout)?), keys.client()?)
                })
            }
            Self::Tcp { to } => connect_tcp(to, timeout).and_then(Stream::new),
            Self::Tls { to, keys } => Keys::read(&keys.identity, &keys.peers)
                .and_then(|keys| tls::connect(connect_tcp(to, timeout)?, keys.client()?)),
            Self::Unix { path } => return ports::connect(path),
            Self::VirtioSerial { folder } => return ports::PortSockets::new(folder).control(),
            Self::SharedMemory { .. } => {
                Err(io::Error::other("shared memory can't be used as a stream"))
            }
        };
        stream.map_err(|error| {
            io::Error::new(error.kind(), format!("cannot connect to {self}: {error}"))
        })
    }
}

/// A way to connect over vsock.
type ConnectVsock = fn(vsock::Address, Duration) -> io::Result<vsock::Stream>;

/// A vsock connection as a type that TLS code accepts: a stream socket, used without any TCP-specific call.
fn socket_of(stream: vsock::Stream) -> TcpStream {
    OwnedFd::from(stream).into()
}

fn connect_tcp(to: &str, timeout: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    let end = Instant::now() + timeout;
    for address in to.to_socket_addrs()? {
        let remaining = end.saturating_duration_since(Instant::now());
        if remaining.is_zero() {
            break;
        }
        match TcpStream::connect_timeout(&address, remaining) {
            Ok(socket) => {
                socket.set_nodelay(true)?;
                return Ok(socket);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::net::UnixStream;

    #[test]
    fn nobody_else_connects_to_a_unix_socket() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("socket");
        let listener = Listener::unix(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        UnixStream::connect(&path).unwrap();
        listener.accept().unwrap();
        // Nothing listens any more: the name is free again.
        drop(listener);
        Listener::unix(&path).unwrap();
    }
}
