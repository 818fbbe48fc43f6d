//! A client's connection, plain or encrypted. All reads and writes share one deadline, so a slow
//! trickle of bytes does not extend it.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// A client's connection.
#[derive(Debug)]
pub(crate) enum Connection {
    Clear(Timed),
    Encrypted(Box<StreamOwned<ServerConnection, Timed>>),
}

/// A socket whose reads and writes fail after a deadline.
#[derive(Debug)]
pub(crate) struct Timed {
    socket: TcpStream,
    until: Instant,
}

impl Connection {
    /// Does not read or write yet: the first read performs the TLS handshake.
    pub(crate) fn new(socket: TcpStream, tls: Option<&Arc<ServerConfig>>) -> io::Result<Self> {
        let timed = Timed { socket, until: Instant::now() };
        let Some(tls) = tls else { return Ok(Self::Clear(timed)) };
        let session = ServerConnection::new(Arc::clone(tls)).map_err(io::Error::other)?;
        Ok(Self::Encrypted(Box::new(StreamOwned::new(session, timed))))
    }

    /// Reads and writes that have not finished by then fail with [`io::ErrorKind::TimedOut`].
    pub(crate) fn end_by(&mut self, until: Instant) {
        self.timed().until = until;
    }

    /// Whether the TLS handshake is still in progress: a response would wait for its end.
    pub(crate) fn is_handshaking(&self) -> bool {
        matches!(self, Self::Encrypted(stream) if stream.conn.is_handshaking())
    }

    /// Signals the end of the data.
    pub(crate) fn close(&mut self) -> io::Result<()> {
        if let Self::Encrypted(stream) = self {
            stream.conn.send_close_notify();
            stream.flush()?;
        }
        self.timed().socket.shutdown(Shutdown::Write)
    }

    fn timed(&mut self) -> &mut Timed {
        match self {
            Self::Clear(timed) => timed,
            Self::Encrypted(stream) => stream.get_mut(),
        }
    }
}

impl Read for Connection {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Clear(timed) => timed.read(room),
            Self::Encrypted(stream) => stream.read(room),
        }
    }
}

impl Write for Connection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Clear(timed) => timed.write(bytes),
            Self::Encrypted(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Clear(timed) => timed.flush(),
            Self::Encrypted(stream) => stream.flush(),
        }
    }
}

impl Timed {
    fn remaining(&self) -> io::Result<Duration> {
        let remaining = self.until.checked_duration_since(Instant::now());
        remaining
            .filter(|remaining| !remaining.is_zero())
            .ok_or_else(|| io::ErrorKind::TimedOut.into())
    }
}

/// Maps the system's error kinds for a socket's timeout to a single one.
fn timed_out(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
        _ => error,
    }
}

impl Read for Timed {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.socket.set_read_timeout(Some(self.remaining()?))?;
        self.socket.read(room).map_err(timed_out)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(Some(self.remaining()?))?;
        self.socket.write(bytes).map_err(timed_out)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}
