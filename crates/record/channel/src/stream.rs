//! A byte stream between two machines, over any transport.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use os::waits::Wait;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use sys::vsock;

use crate::peer::Fingerprint;

/// A byte stream.
#[derive(Debug)]
pub struct Stream {
    fd: OwnedFd,
    /// A virtio-serial port of this guest: see [`Stream::is_left`].
    is_port: bool,
    /// See [`Stream::certificate`].
    certificate: Option<Arc<OnceLock<Fingerprint>>>,
}

/// What to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum For {
    Bytes,
    Room,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waited {
    /// The stream is ready, or the peer is gone: the next operation shows which.
    Ready,
    /// The timeout expired, or the wait was stopped.
    Over,
}

/// Delay before another attempt on a port whose driver reports that nothing is at the other end: a poll would return at
/// once.
const AGAIN: Duration = Duration::from_millis(20);

/// A port counts as abandoned after it had no client in all of these checks.
const LOOKS: [Duration; 6] = [
    Duration::from_millis(10),
    Duration::from_millis(20),
    Duration::from_millis(40),
    Duration::from_millis(80),
    Duration::from_millis(160),
    Duration::from_millis(320),
];

impl Stream {
    /// A stream over a file, in non-blocking mode.
    ///
    /// # Errors
    /// When the file does not support non-blocking mode.
    pub fn new(fd: impl Into<OwnedFd>) -> io::Result<Self> {
        let fd = fd.into();
        let flags = fcntl_getfl(&fd)?;
        fcntl_setfl(&fd, flags | OFlags::NONBLOCK)?;
        Ok(Self { fd, is_port: false, certificate: None })
    }

    /// A stream over a virtio-serial port of this guest.
    pub(crate) fn port(fd: impl Into<OwnedFd>) -> io::Result<Self> {
        Ok(Self { is_port: true, ..Self::new(fd)? })
    }

    /// Whether the peer uses a privileged vsock port: no ordinary user of the other machine made this connection.
    #[must_use]
    pub fn is_from_privileged_port(&self) -> bool {
        vsock::peer_of(self.fd.as_fd()).is_some_and(|peer| peer.port <= vsock::LAST_PRIVILEGED_PORT)
    }

    /// The same stream; `certificate` is set before any byte of the peer arrives.
    #[cfg(feature = "tls")]
    pub(crate) fn shown_by(self, certificate: Arc<OnceLock<Fingerprint>>) -> Self {
        Self { certificate: Some(certificate), ..self }
    }

    /// The certificate of the authenticated peer. `None` without TLS, and before the end of the handshake, when nothing
    /// can be read either.
    #[must_use]
    pub fn certificate(&self) -> Option<Fingerprint> {
        self.certificate.as_ref()?.get().copied()
    }

    /// Whether the other end of a port was closed.
    ///
    /// The driver learns it late: the news travel on a separate queue, which the kernel reads after the data queue. If
    /// a client leaves and another connects at once, the new client's bytes arrive first, then the close, then the
    /// open. So only a state that persists for a while counts.
    fn is_left(&self) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let is_left = || {
            let mut fds = [PollFd::new(&self.fd, PollFlags::empty())];
            poll(&mut fds, Some(&now)).is_ok()
                && fds.iter().all(|fd| fd.revents().contains(PollFlags::HUP))
        };
        is_left()
            && LOOKS.iter().all(|&time| {
                std::thread::sleep(time);
                is_left()
            })
    }

    /// Sets blocking or non-blocking mode.
    pub(crate) fn wait_in_kernel(&self, waits: bool) -> io::Result<()> {
        let mut flags = fcntl_getfl(&self.fd)?;
        flags.set(OFlags::NONBLOCK, !waits);
        Ok(fcntl_setfl(&self.fd, flags)?)
    }

    /// Reads available bytes; 0 when the peer has ended the stream.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] when nothing arrived; otherwise an error of the system.
    pub fn read(&self, buffer: &mut [u8], wait: Wait<'_>) -> io::Result<usize> {
        self.retry(For::Bytes, wait, |fd| match rustix::io::read(fd, &mut *buffer)? {
            // The driver reports a closed other end, which may be wrong.
            0 if self.is_port && !self.is_left() => Err(io::ErrorKind::WouldBlock.into()),
            read => Ok(read),
        })
    }

    /// Writes everything.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] when the peer has not accepted everything in time; it may have accepted a part.
    pub fn write_all(&self, mut bytes: &[u8], wait: Wait<'_>) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = self.retry(For::Room, wait, |fd| Ok(rustix::io::write(fd, bytes)?))?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            bytes = bytes.get(written..).unwrap_or_default();
        }
        Ok(())
    }

    /// Retries the non-blocking `operation` until it succeeds; returns its result.
    pub(crate) fn write_by(
        &self,
        wait: Wait<'_>,
        operation: impl FnMut(BorrowedFd<'_>) -> io::Result<usize>,
    ) -> io::Result<usize> {
        self.retry(For::Room, wait, operation)
    }

    fn retry(
        &self,
        what: For,
        wait: Wait<'_>,
        mut operation: impl FnMut(BorrowedFd<'_>) -> io::Result<usize>,
    ) -> io::Result<usize> {
        loop {
            match operation(self.fd.as_fd()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => return other,
            }
            if self.wait(what, wait)? == Waited::Over {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }

    fn wait(&self, what: For, wait: Wait<'_>) -> io::Result<Waited> {
        let flags = if what == For::Bytes { PollFlags::IN } else { PollFlags::OUT };
        let mut fds = vec![PollFd::new(&self.fd, flags)];
        fds.extend(wait.stop().iter().map(|stop| PollFd::from_borrowed_fd(*stop, PollFlags::IN)));
        let remaining = wait.remaining();
        match poll(&mut fds, Timespec::try_from(remaining).ok().as_ref()) {
            Ok(0) => return Ok(Waited::Over),
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(Waited::Ready),
            Err(error) => return Err(error.into()),
        }
        let mut revents = fds.iter().map(PollFd::revents);
        let stream_events = revents.next().unwrap_or(PollFlags::empty());
        if revents.any(|stop| !stop.is_empty()) {
            return Ok(Waited::Over);
        }
        if !stream_events.contains(flags) && stream_events.contains(PollFlags::HUP) {
            // A port without a client. For a closed socket, the next operation returns an error.
            std::thread::sleep(AGAIN.min(remaining));
        }
        Ok(Waited::Ready)
    }
}

/// Whether the peer has closed its end of a connection. A host that sends nothing any more is gone.
#[must_use]
pub fn is_closed(connection: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(connection, PollFlags::RDHUP)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let gone = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
    poll(&mut fds, Some(&at_once)).is_ok() && fds.iter().any(|fd| fd.revents().intersects(gone))
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
