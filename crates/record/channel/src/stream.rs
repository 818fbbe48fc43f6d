//! A stream of bytes between two machines, of whatever kind.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use os::waits::Wait;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use sys::vsock;

use crate::peer::Fingerprint;

/// A stream of bytes.
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
    /// What was waited for is there, or the other side is gone: the next operation shows which.
    Ready,
    /// It took too long, or was to stop.
    Over,
}

/// Delay before another attempt on a port whose driver reports that nothing is at the other end: a
/// poll would return at once.
const AGAIN: Duration = Duration::from_millis(20);

/// How long, in all, a port must be without a client before that is believed: less each time.
const LOOKS: [Duration; 6] = [
    Duration::from_millis(10),
    Duration::from_millis(20),
    Duration::from_millis(40),
    Duration::from_millis(80),
    Duration::from_millis(160),
    Duration::from_millis(320),
];

impl Stream {
    /// A stream over a file, of which no operation waits in the kernel any more.
    ///
    /// # Errors
    /// When the file takes no flags.
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

    /// Whether it is a vsock connection from a port that needs privileges: no ordinary user of the other
    /// machine has made it.
    #[must_use]
    pub fn is_from_privileged_port(&self) -> bool {
        vsock::peer_of(self.fd.as_fd()).is_some_and(|peer| peer.port <= vsock::LAST_PRIVILEGED_PORT)
    }

    /// The same stream, whose other side will have shown a certificate once something comes of it.
    #[cfg(feature = "tls")]
    pub(crate) fn shown_by(self, certificate: Arc<OnceLock<Fingerprint>>) -> Self {
        Self { certificate: Some(certificate), ..self }
    }

    /// The certificate that the other side has shown that it has the key of; none unless this is
    /// TLS, and before its handshake is over: then nothing can be read either.
    #[must_use]
    pub fn certificate(&self) -> Option<Fingerprint> {
        self.certificate.as_ref()?.get().copied()
    }

    /// Whether the other end of a port was closed.
    ///
    /// What the driver says of that comes late: it travels on a queue of its own, which the kernel
    /// reads after the one with the bytes. When a client leaves and another comes at once, the new
    /// one's bytes are there first, then the news that nobody is there, then that somebody is. So
    /// only what stays true for a while is believed.
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

    /// Whether operations wait in the kernel.
    pub(crate) fn wait_in_kernel(&self, waits: bool) -> io::Result<()> {
        let mut flags = fcntl_getfl(&self.fd)?;
        flags.set(OFlags::NONBLOCK, !waits);
        Ok(fcntl_setfl(&self.fd, flags)?)
    }

    /// Reads what there is; 0 when the other side has ended the stream.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] when nothing came; else what the system says.
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
    /// [`io::ErrorKind::TimedOut`] when the other side has not taken all of it by then; it may have
    /// taken a part.
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

    /// Repeats `operation`, which never waits in the kernel, until it is done: what it returned.
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
            // A port without a client; a socket that has ended says so at the next operation.
            std::thread::sleep(AGAIN.min(remaining));
        }
        Ok(Waited::Ready)
    }
}

/// Whether the other side has closed its end of a connection: an agent's host that sends nothing any more
/// is gone.
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
