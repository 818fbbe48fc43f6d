//! Carries bytes between a TLS connection and a socket, both ways, until either ends.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::Connection;

use super::HANDSHAKE;
use crate::peer::Fingerprint;

/// Bytes per read.
const BYTES: usize = 64 << 10;
/// Max time of a single wait; nothing happens in between.
const LOOK: Duration = Duration::from_secs(60);

/// Carries until either side ends, then closes both. Sets `shown` to the peer's identity before any of its bytes are
/// passed on.
pub(super) fn carry(
    tcp: &TcpStream,
    connection: Connection,
    inside: &UnixStream,
    shown: &OnceLock<Fingerprint>,
) {
    // The stream's user sees the end.
    let _ = Carrier::new(tcp, connection, inside, shown).and_then(|mut carrier| carrier.run());
    let _ = tcp.shutdown(Shutdown::Both);
    let _ = inside.shutdown(Shutdown::Both);
}

struct Carrier<'a> {
    tcp: &'a TcpStream,
    connection: Connection,
    inside: &'a UnixStream,
    shown: &'a OnceLock<Fingerprint>,
    /// Bytes received that the stream's user has not read yet.
    waiting: Vec<u8>,
    /// The stream's user has ended.
    is_over: bool,
    start: Instant,
}

impl<'a> Carrier<'a> {
    fn new(
        tcp: &'a TcpStream,
        connection: Connection,
        inside: &'a UnixStream,
        shown: &'a OnceLock<Fingerprint>,
    ) -> io::Result<Self> {
        tcp.set_nonblocking(true)?;
        inside.set_nonblocking(true)?;
        let (waiting, is_over, start) = (Vec::new(), false, Instant::now());
        Ok(Self { tcp, connection, inside, shown, waiting, is_over, start })
    }

    fn run(&mut self) -> io::Result<()> {
        loop {
            while self.connection.wants_write() {
                if would_wait(self.connection.write_tls(&mut self.tcp))?.is_none() {
                    break;
                }
            }
            self.give()?;
            if self.is_over && !self.connection.wants_write() {
                return Ok(());
            }
            self.wait()?;
            if !self.hear()? {
                return self.give();
            }
            self.take()?;
        }
    }

    /// Waits until there is something to do.
    fn wait(&self) -> io::Result<()> {
        let mut of_tcp = PollFlags::empty();
        let mut of_inside = PollFlags::empty();
        // Reads no more until the stream's user has read everything.
        of_tcp.set(PollFlags::IN, self.waiting.is_empty());
        of_tcp.set(PollFlags::OUT, self.connection.wants_write());
        of_inside.set(PollFlags::OUT, !self.waiting.is_empty());
        of_inside.set(PollFlags::IN, self.takes());
        let mut fds = vec![PollFd::new(self.tcp, of_tcp)];
        if !of_inside.is_empty() {
            fds.push(PollFd::new(self.inside, of_inside));
        }
        let timeout = if self.connection.is_handshaking() { HANDSHAKE } else { LOOK };
        match poll(&mut fds, Timespec::try_from(timeout).ok().as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if self.connection.is_handshaking() && self.start.elapsed() > HANDSHAKE {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(())
    }

    /// Whether to read from the stream's user.
    fn takes(&self) -> bool {
        !self.is_over && !self.connection.is_handshaking() && !self.connection.wants_write()
    }

    /// Reads from the connection; false when it has ended.
    fn hear(&mut self) -> io::Result<bool> {
        if !self.waiting.is_empty() {
            return Ok(true);
        }
        let is_open = would_wait(self.connection.read_tls(&mut self.tcp))? != Some(0);
        let state = self.connection.process_new_packets();
        let state = state.map_err(|error| {
            // Sends the peer an alert with the reason.
            let _ = self.connection.write_tls(&mut self.tcp);
            io::Error::other(error)
        })?;
        if !self.connection.is_handshaking()
            && self.shown.get().is_none()
            && let Some(fingerprint) = super::fingerprint(&self.connection)
        {
            let _ = self.shown.set(fingerprint);
        }
        let mut bytes = vec![0; state.plaintext_bytes_to_read()];
        self.connection.reader().read_exact(&mut bytes)?;
        self.waiting = bytes;
        Ok(is_open && !state.peer_has_closed())
    }

    /// Passes received bytes to the stream's user, as far as it accepts them.
    fn give(&mut self) -> io::Result<()> {
        while !self.waiting.is_empty() {
            match would_wait(self.inside.write(&self.waiting))? {
                Some(written) => drop(self.waiting.drain(..written)),
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// Reads what the stream's user wants to send.
    fn take(&mut self) -> io::Result<()> {
        if !self.takes() {
            return Ok(());
        }
        let mut bytes = vec![0; BYTES];
        match would_wait(self.inside.read(&mut bytes))? {
            Some(0) => {
                self.is_over = true;
                self.connection.send_close_notify();
            }
            Some(read) => {
                let bytes = bytes.get(..read).unwrap_or_default();
                self.connection.writer().write_all(bytes)?;
            }
            None => {}
        }
        Ok(())
    }
}

/// `None` if the operation would block.
fn would_wait(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(count) => Ok(Some(count)),
        Err(error)
            if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
