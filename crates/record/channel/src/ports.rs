//! virtio-serial: one port for control and one for the pages of each CPU, found by name.
//!
//! In the guest they are character devices; on the host each is a socket of QEMU (`-chardev
//! socket,path=FOLDER/hyperscope.cpu0,server=on,wait=off`).

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;

use crate::stream::Stream;
use os::waits::Wait;

/// The kernel's list of ports.
const CLASS: &str = "/sys/class/virtio-ports";
/// The name of the control port.
const CONTROL: &str = "hyperscope.control";
/// Prefix of page port names; a number follows.
const PAGES: &str = "hyperscope.cpu";

#[derive(Clone, Debug)]
pub struct GuestPorts {
    class: PathBuf,
}

impl GuestPorts {
    /// The ports of this guest; `None` if it has none for recording.
    #[must_use]
    pub fn find() -> Option<Self> {
        let ports = Self { class: CLASS.into() };
        ports.device(CONTROL).is_some().then_some(ports)
    }

    /// Number of page ports, consecutive from 0.
    #[must_use]
    pub fn page_ports(&self) -> u32 {
        let has = |at: &u32| self.device(&format!("{PAGES}{at}")).is_some();
        (0..).take_while(has).fold(0, |count, _| count + 1)
    }

    /// Opens the control port.
    ///
    /// # Errors
    /// When the port is missing, or another program has it open.
    pub fn control(&self) -> io::Result<Stream> {
        self.open(CONTROL)
    }

    /// Opens a page port.
    ///
    /// # Errors
    /// As [`GuestPorts::control`].
    pub fn pages(&self, at: u32) -> io::Result<Stream> {
        self.open(&format!("{PAGES}{at}"))
    }

    /// sysfs folders of all ports for recording: they may belong to several devices.
    pub(crate) fn folders(&self) -> Vec<PathBuf> {
        let pages = (0..self.page_ports()).map(|at| format!("{PAGES}{at}"));
        let names = std::iter::once(CONTROL.to_owned()).chain(pages);
        names.filter_map(|name| Some(self.class.join(self.device(&name)?))).collect()
    }

    fn open(&self, name: &str) -> io::Result<Stream> {
        let device = self.device(name).ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, format!("the virtio port {name} is missing"))
        })?;
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(flags);
        Stream::port(options.open(Path::new("/dev").join(device))?)
    }

    fn device(&self, name: &str) -> Option<String> {
        let entries = fs::read_dir(&self.class).ok()?;
        let mut devices = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        devices.find(|device| {
            let path = self.class.join(device).join("name");
            fs::read_to_string(path).is_ok_and(|text| text.trim() == name)
        })
    }
}

impl Stream {
    /// Waits until the other end of a port is open, by a blocking write of `bytes`: the kernel has no other way to
    /// wait, a poll would return at once, again and again.
    ///
    /// # Errors
    /// When the port is unplugged.
    pub fn write_when_joined(&self, bytes: &[u8]) -> io::Result<()> {
        self.wait_in_kernel(true)?;
        let written = rustix::io::write(self, bytes);
        self.wait_in_kernel(false)?;
        let rest = bytes.get(written?..).unwrap_or_default();
        self.write_all(rest, Wait::at_most(Duration::from_secs(1)))
    }
}

/// A guest's ports, seen from the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSockets {
    folder: PathBuf,
}

impl PortSockets {
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Connects to the control port.
    ///
    /// # Errors
    /// When its socket is missing, or another program is connected.
    pub fn control(&self) -> io::Result<Stream> {
        connect(&self.folder.join(CONTROL))
    }

    /// Connects to a page port.
    ///
    /// # Errors
    /// As [`PortSockets::control`].
    pub fn pages(&self, at: u32) -> io::Result<Stream> {
        connect(&self.folder.join(format!("{PAGES}{at}")))
    }
}

pub(crate) fn connect(path: &Path) -> io::Result<Stream> {
    let socket = UnixStream::connect(path).map_err(|error| {
        io::Error::new(error.kind(), format!("cannot connect to {}: {error}", path.display()))
    })?;
    Stream::new(socket)
}
