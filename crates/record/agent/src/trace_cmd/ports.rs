//! Additional ports: for each CPU's pages, and for time synchronisation.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use channel::{Listener, Peer, Stream};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sys::vsock::PORT_ANY;

/// Listens on a free port of a listener's network; returns the port.
pub(super) fn on_same_network(listener: &Listener) -> io::Result<(Listener, u32)> {
    let other = match listener {
        Listener::Tcp(tcp) => {
            let any = SocketAddr::new(tcp.local_addr()?.ip(), 0);
            Listener::tcp(&any.to_string())?
        }
        _ => Listener::vsock(PORT_ANY)?,
    };
    let port = port(&other)?;
    Ok((other, port))
}

fn port(listener: &Listener) -> io::Result<u32> {
    match listener {
        Listener::Vsock(listener) => Ok(listener.address()?.port),
        Listener::Tcp(listener) => Ok(listener.local_addr()?.port().into()),
        Listener::Tls(..) | Listener::TlsVsock(..) | Listener::Unix(_) => {
            Err(io::ErrorKind::Unsupported.into())
        }
    }
}

/// Waits for a connection from this peer until the peer's first connection is closed. Closes connections of others.
pub(super) fn accept_from(
    listener: &Listener,
    (peer, host): (&Peer, BorrowedFd<'_>),
    timeout: Duration,
) -> io::Result<Stream> {
    let end = Instant::now() + timeout;
    loop {
        let remaining = end.saturating_duration_since(Instant::now());
        let mut fds = [
            PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(host, PollFlags::RDHUP),
        ];
        match poll(&mut fds, Timespec::try_from(remaining).ok().as_ref()) {
            Ok(0) if remaining.is_zero() => return Err(io::ErrorKind::TimedOut.into()),
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let [connected, _] = &fds;
        if connected.revents().is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let (stream, from) = listener.accept()?;
        if from == *peer {
            return Ok(stream);
        }
    }
}
