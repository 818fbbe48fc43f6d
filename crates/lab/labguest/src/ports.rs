//! The virtio-serial ports of this machine, by name.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::thread;
use std::time::Duration;

use labguest::wire::{Message, Ready};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

/// The kernel's list of ports.
const CLASS: &str = "/sys/class/virtio-ports";

/// Max tries until ports appear after their driver was loaded.
const TRIES: u32 = 100;
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// A port counts as abandoned after it had no client in all of these checks.
const LOOKS: [Duration; 6] = [
    Duration::from_millis(10),
    Duration::from_millis(20),
    Duration::from_millis(40),
    Duration::from_millis(80),
    Duration::from_millis(160),
    Duration::from_millis(320),
];

/// A control port.
///
/// The driver learns the state of the other end late: the news travel on a separate queue, which the kernel reads after
/// the data queue. If a client leaves and another connects at once, the new client's bytes arrive first, then the
/// close, then the open. So only a state that persists for a while counts. The driver also reports readable data
/// whenever it reports a closed other end.
#[derive(Debug)]
pub(crate) struct Port(File);

/// The state of a port, after a wait or without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PortState {
    /// Nothing to read.
    Quiet,
    /// There is something to read.
    Readable,
    /// The other end seems to be closed.
    Left,
}

impl PortState {
    /// The state that a poll returned.
    pub(crate) fn from_flags(flags: PollFlags) -> Self {
        if flags.contains(PollFlags::HUP) {
            Self::Left
        } else if flags.contains(PollFlags::IN) {
            Self::Readable
        } else {
            Self::Quiet
        }
    }
}

impl Port {
    /// Makes a port non-blocking, except for [`Port::wait_for_client`].
    fn new(file: File) -> io::Result<Self> {
        set_waiting(&file, false)?;
        Ok(Self(file))
    }

    /// Waits until the other end is open, by writing that this machine is ready. Only a blocking write can wait for
    /// that; a poll returns at once, again and again.
    pub(crate) fn wait_for_client(&self, ready: Ready) -> io::Result<()> {
        set_waiting(&self.0, true)?;
        labguest::wire::write(&mut &self.0, &Message::Ready(ready))?;
        set_waiting(&self.0, false)
    }

    /// Whether the other end was closed.
    pub(crate) fn is_left(&self) -> bool {
        let is_left = || matches!(self.wait(PollFlags::empty(), true), Ok(PortState::Left));
        is_left()
            && LOOKS.iter().all(|&time| {
                thread::sleep(time);
                is_left()
            })
    }

    fn wait(&self, wanted: PollFlags, at_once: bool) -> io::Result<PortState> {
        let mut fd = [PollFd::new(&self.0, wanted)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fd, at_once.then_some(&now))?;
        let [fd] = fd;
        Ok(PortState::from_flags(fd.revents()))
    }

    /// Repeats a call that would block, until it succeeds or the other end is closed.
    fn retry(
        &self,
        wanted: PollFlags,
        mut operation: impl FnMut() -> io::Result<usize>,
    ) -> io::Result<usize> {
        loop {
            match operation() {
                // The driver reports a closed other end with this.
                Ok(0) if self.is_left() => return Ok(0),
                Ok(0) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.wait(wanted, false)? == PortState::Left && self.is_left() {
                        return Ok(0);
                    }
                }
                other => return other,
            }
        }
    }
}

fn set_waiting(file: &File, waiting: bool) -> io::Result<()> {
    let mut flags = fcntl_getfl(file)?;
    flags.set(OFlags::NONBLOCK, !waiting);
    Ok(fcntl_setfl(file, flags)?)
}

impl Read for &Port {
    /// Waits for bytes; returns 0 if the other end is closed.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.retry(PollFlags::IN, || (&self.0).read(buffer))
    }
}

impl Write for &Port {
    /// Waits until bytes are written; returns 0 if the other end is closed.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.retry(PollFlags::OUT, || (&self.0).write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Opens the control ports, in the order of their numbers.
pub(crate) fn open_control_ports() -> io::Result<Vec<Port>> {
    (0..labguest::wire::PORTS)
        .map(|at| open(&format!("{}{at}", labguest::wire::PORT_PREFIX)).and_then(Port::new))
        .collect()
}

fn open(name: &str) -> io::Result<File> {
    for _ in 0..TRIES {
        if let Some(device) = device(name) {
            return OpenOptions::new().read(true).write(true).open(format!("/dev/{device}"));
        }
        thread::sleep(BETWEEN_TRIES);
    }
    Err(io::Error::new(io::ErrorKind::NotFound, format!("the virtio port {name} is missing")))
}

fn device(name: &str) -> Option<String> {
    let entries = fs::read_dir(CLASS).ok()?;
    let mut devices = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    devices.find(|device| {
        fs::read_to_string(format!("{CLASS}/{device}/name")).is_ok_and(|text| text.trim() == name)
    })
}
