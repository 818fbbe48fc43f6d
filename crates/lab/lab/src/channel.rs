//! Byte streams to control ports and monitors: a local Unix socket, or one inside a machine, through a session with
//! that machine.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::cache::Lock;
use crate::watch::Watch;
use labguest::wire::{FrameError, MAX_PAYLOAD_BYTES, Message};

/// Both directions of a stream, and its read timeout.
pub(crate) struct Channel {
    pub(crate) reader: Box<dyn Read + Send>,
    pub(crate) writer: Box<dyn Write + Send>,
    pub(crate) patience: Patience,
    pub(crate) watched: Watched,
    /// Held while the stream is open.
    pub(crate) lock: Option<Lock>,
}

/// Deadline of reads; shared by all streams through one socket.
#[derive(Clone, Debug, Default)]
pub(crate) struct Patience {
    until: Arc<Mutex<Option<Instant>>>,
}

/// Checks a silent machine for a waiting reader, once it is set; shared like [`Patience`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Watched {
    watch: Arc<Mutex<Option<Watch>>>,
}

impl Watched {
    /// Starts watching the machines.
    pub(crate) fn set(&self, watch: Watch) {
        *self.watch.lock() = Some(watch);
    }

    /// Fails once a machine hangs.
    fn check(&self, silence: Duration) -> io::Result<()> {
        let mut watch = self.watch.lock();
        let found = watch.as_mut().and_then(|watch| watch.look(silence));
        found.map_or(Ok(()), |still| Err(io::Error::new(io::ErrorKind::TimedOut, still)))
    }
}

/// Interval at which a waiting reader checks the time.
const LOOK: Duration = Duration::from_millis(100);

impl Patience {
    /// Sets the timeout from now; `None`: no timeout.
    pub(crate) fn set(&self, time: Option<Duration>) {
        *self.until.lock() = time.map(|time| Instant::now() + time);
    }

    fn is_over(&self) -> bool {
        self.until.lock().is_some_and(|until| Instant::now() >= until)
    }
}

impl Channel {
    /// Connects to a local socket.
    pub(crate) fn connect(path: &Path) -> io::Result<Self> {
        let socket = UnixStream::connect(path)?;
        socket.set_read_timeout(Some(LOOK))?;
        let (patience, watched) = (Patience::default(), Watched::default());
        let reader = Patient {
            socket: socket.try_clone()?,
            patience: patience.clone(),
            watched: watched.clone(),
        };
        let (reader, writer) = (Box::new(reader), Box::new(socket));
        Ok(Self { reader, writer, patience, watched, lock: None })
    }

    /// The stream inside a session, after its machine has connected to a socket.
    pub(crate) fn through(outer: Self) -> Self {
        let reader = Unwrap { outer: outer.reader, rest: Vec::new(), position: 0 };
        let writer = Wrap { outer: outer.writer };
        Self {
            reader: Box::new(reader),
            writer: Box::new(writer),
            patience: outer.patience,
            watched: outer.watched,
            lock: outer.lock,
        }
    }

    /// Holds a lock while the stream is open.
    pub(crate) fn holding(self, lock: Lock) -> Self {
        Self { lock: Some(lock), ..self }
    }
}

/// Reads from a socket until the deadline, or until a machine hangs.
struct Patient {
    socket: UnixStream,
    patience: Patience,
    watched: Watched,
}

impl Read for Patient {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let start = Instant::now();
        loop {
            match self.socket.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.patience.is_over() {
                        return Err(io::Error::new(io::ErrorKind::TimedOut, "no answer in time"));
                    }
                    self.watched.check(start.elapsed())?;
                }
                other => return other,
            }
        }
    }
}

/// Unwraps bytes from `Data` messages.
struct Unwrap {
    outer: Box<dyn Read + Send>,
    rest: Vec<u8>,
    position: usize,
}

impl Read for Unwrap {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.position == self.rest.len() {
            self.position = 0;
            self.rest = match labguest::wire::read(&mut self.outer) {
                Ok(Message::Data(bytes)) => bytes,
                Ok(_) | Err(FrameError::Closed) => return Ok(0),
                Err(FrameError::Io(error)) => return Err(error),
                Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
            };
        }
        let rest = self.rest.get(self.position..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        for (to, from) in buffer.iter_mut().zip(rest) {
            *to = *from;
        }
        self.position += count;
        Ok(count)
    }
}

/// Wraps bytes in `Data` messages.
struct Wrap {
    outer: Box<dyn Write + Send>,
}

impl Write for Wrap {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let now = bytes.get(..MAX_PAYLOAD_BYTES).unwrap_or(bytes);
        labguest::wire::write(&mut self.outer, &Message::Data(now.to_vec()))?;
        Ok(now.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.outer.flush()
    }
}
