//! Shared memory as a channel: control streams and page rings in a region (see `shmring`), which is an ivshmem device
//! in the guest and a file on the host. Both sides poll; there are no notifications.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, flock};
use rustix::pipe::{PipeFlags, pipe_with};
use shmring::{
    Access, ByteConsumer, ByteProducer, Filled, GuestSide, HostSide, Mode, PCI_DEVICES,
    PageConsumer, PageProducer, Pulse, Received, RegionPlan, Sent as Written, SharedMap,
    SharedMemoryDevice, Watch, agent_bytes, shared_memory_devices,
};
use tracefs::RawPages;

use crate::sent::Sent;
use os::waits::Wait;

/// A guest's poll interval for messages of the host. Stopping a recording waits half of it on average, and each poll
/// wakes a CPU of the guest.
const GUEST_LOOKS: Duration = Duration::from_millis(250);
/// A host's poll interval: its polls cost the guest nothing.
const HOST_LOOKS: Duration = Duration::from_millis(2);
/// A guest's poll interval for room in a full ring.
const ROOM_LOOKS: Duration = Duration::from_millis(2);
/// Size of each control stream's ring; a message has at most 30 KiB.
const CONTROL_BYTES: usize = 128 << 10;

/// One side's two control streams.
#[derive(Debug)]
pub struct ControlRings {
    to: ByteProducer,
    from: ByteConsumer,
    looks: Duration,
    /// Lives as long as the streams.
    _pulse: Option<Pulse>,
    _lock: Option<File>,
}

impl ControlRings {
    /// Reads available bytes; 0 when the peer has restarted.
    pub(crate) fn read(&mut self, buffer: &mut [u8], wait: Wait<'_>) -> io::Result<usize> {
        loop {
            match self.from.read(buffer) {
                Received::Bytes(0) => {
                    self.from.check()?;
                    pause(self.looks, wait)?;
                }
                Received::Bytes(read) => return Ok(read),
                // The next bytes begin with a new message, and the decoder skips the rest. A guest may cause this
                // endlessly, hence the check.
                Received::NewStream | Received::Damage => check(wait)?,
            }
        }
    }

    pub(crate) fn write_all(&mut self, bytes: &[u8], wait: Wait<'_>) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.to.write(rest) {
                Written::Bytes(0) => {
                    self.to.check()?;
                    pause(ROOM_LOOKS, wait)?;
                }
                Written::Bytes(written) => rest = rest.get(written..).unwrap_or_default(),
                // The peer has not seen the beginning. It may claim this endlessly, hence the check.
                Written::NewPeer => {
                    check(wait)?;
                    rest = bytes;
                }
            }
        }
        Ok(())
    }
}

/// An error if the wait is over.
fn check(wait: Wait<'_>) -> io::Result<()> {
    if wait.is_over() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
}

/// Sleeps until the next poll.
fn pause(looks: Duration, wait: Wait<'_>) -> io::Result<()> {
    let remaining = wait.remaining();
    if remaining.is_zero() {
        return Err(io::ErrorKind::TimedOut.into());
    }
    let mut fds: Vec<_> =
        wait.stop().iter().map(|stop| PollFd::from_borrowed_fd(*stop, PollFlags::IN)).collect();
    match poll(&mut fds, Timespec::try_from(remaining.min(looks)).ok().as_ref()) {
        Ok(0) | Err(rustix::io::Errno::INTR) => Ok(()),
        Ok(_) => Err(io::ErrorKind::TimedOut.into()),
        Err(error) => Err(error.into()),
    }
}

/// Memory that a guest shares with its host, seen from the guest.
#[derive(Clone, Debug)]
pub struct GuestMemory {
    path: PathBuf,
    map: Arc<Mutex<Arc<SharedMap>>>,
}

impl GuestMemory {
    /// Opens the ivshmem device at a PCI address, or the first one; or a file, for machines that are their own guests.
    ///
    /// # Errors
    /// When there is no such device, or it can't be mapped.
    pub fn open(at: Option<&str>) -> io::Result<Self> {
        let path = match at {
            Some(path) if path.starts_with('/') => PathBuf::from(path),
            address => device(address)?,
        };
        let map = Arc::new(SharedMap::open(&path, Access::ReadWrite)?);
        Ok(Self { path, map: Arc::new(Mutex::new(map)) })
    }

    /// The mapping; renewed if its file was truncated or has another length now.
    fn map(&self) -> io::Result<Arc<SharedMap>> {
        let mut map = self.map.lock();
        let len_bytes = std::fs::metadata(&self.path)?.len();
        if map.check().is_err() || map.len_bytes() as u64 != len_bytes {
            *map = Arc::new(SharedMap::open(&self.path, Access::ReadWrite)?);
        }
        Ok(Arc::clone(&map))
    }

    /// Starts over: control rings and page rings of `cpus` CPUs, in the part of the memory that does not belong to the
    /// kernel module.
    ///
    /// # Errors
    /// When the memory is too small.
    pub fn begin(
        &self,
        cpus: usize,
        page_bytes: usize,
        boot_id: [u8; 16],
    ) -> io::Result<(ControlRings, Vec<PageProducer>)> {
        let plan = RegionPlan {
            cpus,
            page_bytes,
            slots_per_cpu: 2,
            mode: Mode::Keep,
            control_bytes: CONTROL_BYTES,
        };
        let map = self.map()?;
        let plan = plan.filling(agent_bytes(map.len_bytes())).map_err(io::Error::other)?;
        let side = GuestSide::create(map, &plan, boot_id);
        let side = side.map_err(io::Error::other)?;
        let control = ControlRings {
            to: side.to_host,
            from: side.from_host,
            looks: GUEST_LOOKS,
            _pulse: Some(side.pulse),
            _lock: None,
        };
        Ok((control, side.pages))
    }
}

fn device(address: Option<&str>) -> io::Result<PathBuf> {
    let device = find(address)?;
    device.enable()?;
    Ok(device.memory_combining.unwrap_or(device.memory))
}

/// The device at the address, or the first one.
fn find(address: Option<&str>) -> io::Result<SharedMemoryDevice> {
    let devices = shared_memory_devices(Path::new(PCI_DEVICES))?;
    let is_meant = |device: &_| address.is_none_or(|address| named(device) == address);
    devices.into_iter().find(is_meant).ok_or_else(|| {
        let text = "this machine does not have this ivshmem device";
        io::Error::new(io::ErrorKind::NotFound, text)
    })
}

/// The sysfs folder of the device that [`GuestMemory::open`] maps; `None` for a file.
pub(crate) fn device_folder(at: Option<&str>) -> Option<Vec<PathBuf>> {
    if at.is_some_and(|at| at.starts_with('/')) {
        return None;
    }
    Some(vec![Path::new(PCI_DEVICES).join(find(at).ok()?.address)])
}

fn named(device: &SharedMemoryDevice) -> &str {
    device.address.trim_start_matches("0000:")
}

/// Whether this machine has memory to share with its host.
#[must_use]
pub fn has_shared_memory() -> bool {
    shared_memory_devices(Path::new(PCI_DEVICES)).is_ok_and(|devices| !devices.is_empty())
}

/// A guest's end of a page ring.
#[derive(Debug)]
pub struct PageRing {
    ring: PageProducer,
    /// Full pages in transit from the kernel's buffer: reading the buffer would also take half-full ones.
    pipe: (OwnedFd, OwnedFd),
    in_pipe: usize,
    page_size: usize,
}

/// Pages per batch: the default size of a pipe.
const PAGES: usize = 16;

impl PageRing {
    /// The guest's end of a CPU's ring.
    ///
    /// # Errors
    /// When the process has no free descriptors.
    pub fn new(ring: PageProducer, page_size: usize) -> io::Result<Self> {
        let pipe = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let _ = rustix::pipe::fcntl_setpipe_size(&pipe.1, PAGES * page_size);
        Ok(Self { ring, pipe, in_pipe: 0, page_size })
    }

    /// Discards what the previous recording left in the pipe.
    pub fn forget(&mut self) {
        let mut bytes = [0; 4096];
        while rustix::io::read(&self.pipe.0, &mut bytes).is_ok_and(|read| read > 0) {}
        self.in_pipe = 0;
    }

    /// Puts full pages into the ring and waits for room; false if no page is full.
    pub(crate) fn send(
        &mut self,
        from: &RawPages,
        sent: &mut Sent,
        wait: Wait<'_>,
    ) -> io::Result<bool> {
        if self.in_pipe == 0 {
            self.in_pipe = from.splice_to(&self.pipe.1, PAGES * self.page_size)?;
        }
        let any = self.in_pipe > 0;
        while self.in_pipe > 0 {
            let Self { ring, pipe, .. } = self;
            match ring.read_from(pipe.0.as_fd())? {
                Filled::Page { len_bytes, .. } => {
                    self.in_pipe -= len_bytes.min(self.in_pipe);
                    sent.bytes += len_bytes as u64;
                }
                Filled::Nothing => self.in_pipe = 0,
                Filled::Full => self.wait_for_room(sent, wait)?,
            }
        }
        Ok(any)
    }

    /// Puts one page into the ring.
    pub(crate) fn send_copy(
        &mut self,
        page: &[u8],
        sent: &mut Sent,
        wait: Wait<'_>,
    ) -> io::Result<()> {
        if page.is_empty() {
            return Ok(());
        }
        loop {
            match self.ring.fill(|slot| Ok(slot.copy_from(page)))? {
                Filled::Full => self.wait_for_room(sent, wait)?,
                Filled::Page { .. } | Filled::Nothing => {
                    sent.bytes += page.len() as u64;
                    return Ok(());
                }
            }
        }
    }

    fn wait_for_room(&mut self, sent: &mut Sent, wait: Wait<'_>) -> io::Result<()> {
        while self.ring.is_full() {
            if let Err(error) = pause(ROOM_LOOKS, wait) {
                sent.bytes += self.in_pipe as u64;
                sent.lost_bytes += self.in_pipe as u64;
                let pages = (self.in_pipe / self.page_size.max(1)) as u64;
                self.ring.lose(pages, self.in_pipe as u64);
                return Err(error);
            }
        }
        Ok(())
    }
}

/// Memory that a host shares with a guest, seen from the host.
#[derive(Debug)]
pub struct HostMemory {
    /// The control streams.
    pub control: ControlRings,
    /// Ends of the page rings, one per CPU.
    pub pages: Vec<PageConsumer>,
    /// The agent's state in the memory.
    pub watch: Watch,
}

impl HostMemory {
    /// Uses the memory in a file that is open for reading and writing, in which an agent has started. Locks the file.
    ///
    /// # Errors
    /// When no agent has started, or another host holds the lock.
    pub fn of_file(file: File) -> io::Result<Self> {
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
            rustix::io::Errno::WOULDBLOCK => io::Error::other("another host uses this memory"),
            error => error.into(),
        })?;
        let map = Arc::new(SharedMap::of_others(&file, Access::ReadWrite)?);
        let side = HostSide::attach(map).map_err(|error| {
            let cause = std::error::Error::source(&error);
            let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
            io::Error::other(format!("{error}{cause}"))
        })?;
        let control = ControlRings {
            to: side.to_guest,
            from: side.from_guest,
            looks: HOST_LOOKS,
            _pulse: None,
            _lock: Some(file),
        };
        Ok(Self { control, pages: side.pages, watch: side.watch })
    }
}
