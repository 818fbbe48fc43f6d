//! Shared memory as a channel: control streams and page rings in a region (see `shmring`), which is an
//! ivshmem device in the guest and a file on the host. Nobody is notified: both sides look.

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

/// How long a guest sleeps between two looks for what the host says: half of that is how long the
/// end of a recording waits, and each look wakes a CPU of the guest up.
const GUEST_LOOKS: Duration = Duration::from_millis(250);
/// The same for a host, whose looks cost the guest nothing.
const HOST_LOOKS: Duration = Duration::from_millis(2);
/// How long a guest sleeps until a full ring has room again.
const ROOM_LOOKS: Duration = Duration::from_millis(2);
/// Bytes of each control stream's ring; a message has 30 KiB at most.
const CONTROL_BYTES: usize = 128 << 10;

/// Both control streams of one side.
#[derive(Debug)]
pub struct ControlRings {
    to: ByteProducer,
    from: ByteConsumer,
    looks: Duration,
    /// Kept as long as the streams are used.
    _pulse: Option<Pulse>,
    _lock: Option<File>,
}

impl ControlRings {
    /// Reads what there is; 0 when the other side has started again.
    pub(crate) fn read(&mut self, buffer: &mut [u8], wait: Wait<'_>) -> io::Result<usize> {
        loop {
            match self.from.read(buffer) {
                Received::Bytes(0) => {
                    self.from.check()?;
                    pause(self.looks, wait)?;
                }
                Received::Bytes(read) => return Ok(read),
                // What comes then begins with a message of its own; what is no message is skipped.
                // A guest may write such again and again.
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
                // The other side has not seen the beginning. It may say so for ever.
                Written::NewPeer => {
                    check(wait)?;
                    rest = bytes;
                }
            }
        }
        Ok(())
    }
}

/// Whether one may continue at once.
fn check(wait: Wait<'_>) -> io::Result<()> {
    if wait.is_over() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
}

/// Sleeps until the next look.
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

/// The memory that a guest shares with its host.
#[derive(Clone, Debug)]
pub struct GuestMemory {
    path: PathBuf,
    map: Arc<Mutex<Arc<SharedMap>>>,
}

impl GuestMemory {
    /// The ivshmem device at a PCI address, or the first that there is; or a file, for machines that
    /// are their own guests.
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

    /// The memory; mapped again where its file was cut, or has another length now.
    fn map(&self) -> io::Result<Arc<SharedMap>> {
        let mut map = self.map.lock();
        let len_bytes = std::fs::metadata(&self.path)?.len();
        if map.check().is_err() || map.len_bytes() as u64 != len_bytes {
            *map = Arc::new(SharedMap::open(&self.path, Access::ReadWrite)?);
        }
        Ok(Arc::clone(&map))
    }

    /// Begins again: ends for control and for the pages of `cpus` CPUs, in the part of the memory that
    /// is not the kernel module's.
    ///
    /// # Errors
    /// When the memory is too small for that.
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

/// The device of that address, or the first that there is.
fn find(address: Option<&str>) -> io::Result<SharedMemoryDevice> {
    let devices = shared_memory_devices(Path::new(PCI_DEVICES))?;
    let is_meant = |device: &_| address.is_none_or(|address| named(device) == address);
    devices.into_iter().find(is_meant).ok_or_else(|| {
        let text = "this machine does not have this ivshmem device";
        io::Error::new(io::ErrorKind::NotFound, text)
    })
}

/// The folder of sysfs of the device that [`GuestMemory::open`] maps; none for a file.
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
    /// Full pages in transit from the kernel's buffer: a read from that would take half-full ones.
    pipe: (OwnedFd, OwnedFd),
    in_pipe: usize,
    page_size: usize,
}

/// Pages taken at once: a pipe's usual places.
const PAGES: usize = 16;

impl PageRing {
    /// The end of the ring of one CPU.
    ///
    /// # Errors
    /// When the process has no more descriptors.
    pub fn new(ring: PageProducer, page_size: usize) -> io::Result<Self> {
        let pipe = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let _ = rustix::pipe::fcntl_setpipe_size(&pipe.1, PAGES * page_size);
        Ok(Self { ring, pipe, in_pipe: 0, page_size })
    }

    /// Forgets what a recording before has left on its way.
    pub fn forget(&mut self) {
        let mut bytes = [0; 4096];
        while rustix::io::read(&self.pipe.0, &mut bytes).is_ok_and(|read| read > 0) {}
        self.in_pipe = 0;
    }

    /// Puts full pages into the ring, waiting for room; false when there is none now.
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

/// The memory that a host shares with a guest.
#[derive(Debug)]
pub struct HostMemory {
    /// The control streams.
    pub control: ControlRings,
    /// The ends of page rings, one a CPU.
    pub pages: Vec<PageConsumer>,
    /// What the agent says of itself in the memory.
    pub watch: Watch,
}

impl HostMemory {
    /// The memory in a file that is open for reading and writing, where an agent has begun. Nobody else may use it meanwhile.
    ///
    /// # Errors
    /// When no agent has, or another host is there.
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
