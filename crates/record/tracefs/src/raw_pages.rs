//! One CPU's raw pages from the kernel: `per_cpu/cpuN/trace_pipe_raw`.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::pipe::{SpliceFlags, splice};

use crate::error::{Result, TracefsError};
use crate::instance::Instance;

/// The open file.
#[derive(Debug)]
pub struct RawPages {
    file: File,
    page_size: usize,
}

/// What ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Woken {
    /// The kernel's buffer has reached `buffer_percent`.
    pub pages: bool,
    /// The other file is ready.
    pub other: bool,
}

impl RawPages {
    /// Opens a CPU's pages of `page_size` bytes.
    ///
    /// # Errors
    /// When there is no such CPU.
    pub fn open(instance: &Instance, cpu: u32, page_size: usize) -> Result<Self> {
        Self::open_file(&instance.file(&format!("per_cpu/cpu{cpu}/trace_pipe_raw")), page_size)
    }

    fn open_file(path: &Path, page_size: usize) -> Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
            .open(path)
            .map_err(TracefsError::io("open", path))?;
        Ok(Self { file, page_size })
    }

    /// Size of a page.
    #[must_use]
    pub fn page_size(&self) -> usize {
        self.page_size
    }

    /// Waits until there are pages, or the other file is readable, or the timeout expires.
    ///
    /// # Errors
    /// When the kernel can't wait for them.
    pub fn wait(&self, other_fd: BorrowedFd<'_>, timeout: Option<Duration>) -> io::Result<Woken> {
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let mut fds = [
            PollFd::new(&self.file, PollFlags::IN),
            PollFd::from_borrowed_fd(other_fd, PollFlags::IN),
        ];
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(Woken { pages: false, other: false }),
            Err(error) => return Err(error.into()),
        }
        let [page_events, other] = fds.map(|fd| fd.revents());
        if other.is_empty() && !page_events.is_empty() && !page_events.contains(PollFlags::IN) {
            // The CPU is offline: poll returns at once until the CPU is plugged in.
            return Self::wait_for_cpu(other_fd, timeout);
        }
        Ok(Woken { pages: page_events.contains(PollFlags::IN), other: !other.is_empty() })
    }

    fn wait_for_cpu(other: BorrowedFd<'_>, timeout: Option<Timespec>) -> io::Result<Woken> {
        let look = Timespec { tv_sec: 1, tv_nsec: 0 };
        let timeout =
            timeout.filter(|timeout| (timeout.tv_sec, timeout.tv_nsec) < (look.tv_sec, 0));
        let mut fds = [PollFd::from_borrowed_fd(other, PollFlags::IN)];
        match poll(&mut fds, Some(&timeout.unwrap_or(look))) {
            Ok(ready) => Ok(Woken { pages: false, other: ready > 0 }),
            Err(rustix::io::Errno::INTR) => Ok(Woken { pages: false, other: false }),
            Err(error) => Err(error.into()),
        }
    }

    /// Moves full pages into a pipe, at most `most_bytes`. Returns the number of bytes moved, 0 if there is no page
    /// now.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn splice_to(&self, pipe: impl AsFd, most_bytes: usize) -> io::Result<usize> {
        let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
        loop {
            match splice(&self.file, None, &pipe, None, most_bytes, flags) {
                Ok(moved) => return Ok(moved),
                Err(rustix::io::Errno::AGAIN) => return Ok(0),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Reads the next page, full or not, into the beginning of `page`; false if there is none.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn read_page(&mut self, page: &mut [u8]) -> io::Result<bool> {
        let page = page.get_mut(..self.page_size).ok_or(io::ErrorKind::InvalidInput)?;
        loop {
            match self.file.read(page) {
                Ok(0) => return Ok(false),
                Ok(read) => {
                    // The rest still has bytes of the previous page.
                    page.get_mut(read..).unwrap_or_default().fill(0);
                    return Ok(true);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                // The CPU is offline, and has no buffer until it is plugged in for the first time.
                Err(error)
                    if error.raw_os_error() == Some(rustix::io::Errno::NODEV.raw_os_error()) =>
                {
                    return Ok(false);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl AsFd for RawPages {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
