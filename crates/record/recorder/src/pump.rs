//! Moves pages from a CPU's kernel buffer to a file with splice, without copying.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use os::confine::Confined;
use os::folder::{Folder, OutFile};
use os::waits::Signal;
use rustix::fd::OwnedFd;
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use tracefs::RawPages;

use crate::error::{RecordError, Result};
use crate::flusher::Growing;
use crate::pages_folder::pages;
use crate::quota::Quota;

/// Max bytes per splice.
const SPLICE_BYTES: usize = 1 << 20;

/// A thread that empties a CPU's buffer.
#[derive(Debug)]
pub(crate) struct Pump {
    pub(crate) cpu: u32,
    bytes: Arc<AtomicU64>,
    /// Its file, for syncing to the disk.
    growing: Option<Growing>,
    thread: JoinHandle<io::Result<()>>,
}

impl Pump {
    /// Starts appending pages to the CPU's file: a new one, or one of an earlier recorder. An incomplete last page of
    /// that recorder can't be completed, so it is cut off. `flush`: max time that an event stays in the kernel's
    /// buffer.
    pub(crate) fn start(
        cpu: u32,
        from: RawPages,
        to: &Folder,
        stop: Signal,
        quota: Quota,
        flush: Option<Duration>,
    ) -> Result<Self> {
        let path = to.path().join(pages(cpu));
        let failed = || RecordError::io("write", &path);
        let mut file = to.append(&pages(cpu)).map_err(failed())?;
        let written = file.len();
        file.cut(written - written % from.page_size().max(1) as u64).map_err(failed())?;
        let bytes = Arc::new(AtomicU64::new(0));
        let growing = Growing::new(file.syncer().map_err(failed())?, Arc::clone(&bytes));
        let mover = Mover::new(from, file, Arc::clone(&bytes), quota, flush)
            .map_err(RecordError::io("make a pipe for", &path))?;
        let thread = thread::Builder::new()
            .name(format!("hyperscope-p{cpu}"))
            .spawn(move || {
                Confined::WORKER.enter();
                mover.run(&stop)
            })
            .map_err(RecordError::io("start a thread for", &path))?;
        Ok(Self { cpu, bytes, growing: Some(growing), thread })
    }

    /// Takes its growing file; `None` after the first call.
    pub(crate) fn growing(&mut self) -> Option<Growing> {
        self.growing.take()
    }

    /// Number of bytes moved so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether the thread has ended: early only after a failure.
    pub(crate) fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for the end; returns the total number of bytes, and the error, if any.
    pub(crate) fn join(self) -> (u64, io::Result<()>) {
        let ended = self.thread.join();
        let ended = ended.unwrap_or_else(|_| Err(io::Error::other("its thread panicked")));
        (self.bytes.load(Ordering::Relaxed), ended)
    }
}

/// Source, destination, and the pipe between them.
struct Mover {
    from: RawPages,
    to: OutFile,
    pipe: (OwnedFd, OwnedFd),
    bytes: Arc<AtomicU64>,
    quota: Quota,
    /// Max time that an event stays in the kernel's buffer.
    flush: Option<Duration>,
}

impl Mover {
    fn new(
        from: RawPages,
        to: OutFile,
        bytes: Arc<AtomicU64>,
        quota: Quota,
        flush: Option<Duration>,
    ) -> io::Result<Self> {
        let pipe = pipe_with(PipeFlags::CLOEXEC)?;
        // A pipe that can't grow moves less per splice, but as much in total.
        let _ = fcntl_setpipe_size(&pipe.1, SPLICE_BYTES);
        Ok(Self { from, to, pipe, bytes, quota, flush })
    }

    fn run(mut self, stop: &Signal) -> io::Result<()> {
        let mut page = vec![0; self.from.page_size()];
        let mut flushed = Instant::now();
        loop {
            // Time since the last flush, however often full pages wake this thread in between.
            let remaining = self.flush.map(|flush| flush.saturating_sub(flushed.elapsed()));
            let is_over = self.from.wait(stop.fd(), remaining)?.other;
            while self.splice(stop)? {}
            if is_over {
                while self.copy(&mut page)? {}
                return Ok(());
            }
            if self.flush.is_some_and(|flush| flushed.elapsed() >= flush) {
                self.copy(&mut page)?;
                flushed = Instant::now();
            }
        }
    }

    /// Moves whole pages; false if there are none now, or the quota may not suffice: then the recording ends, and the
    /// pages stay in the kernel's buffer until it has.
    fn splice(&mut self, stop: &Signal) -> io::Result<bool> {
        if !self.quota.take(SPLICE_BYTES as u64) {
            stop.wait(Duration::MAX);
            return Ok(false);
        }
        let moved = self.from.splice_to(&self.pipe.1, SPLICE_BYTES);
        let unused = SPLICE_BYTES.saturating_sub(*moved.as_ref().unwrap_or(&0));
        self.quota.give_back(unused as u64);
        let mut moved = moved?;
        let any = moved > 0;
        while moved > 0 {
            let written = self.to.splice_from(&self.pipe.0, moved)?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            moved -= written;
            self.bytes.fetch_add(written as u64, Ordering::Release);
        }
        Ok(any)
    }

    /// Copies a page: the partial one, which splice leaves in the buffer, or one for which the quota of a whole splice
    /// was too small. False if there is none.
    fn copy(&mut self, page: &mut [u8]) -> io::Result<bool> {
        if !self.from.read_page(page)? {
            return Ok(false);
        }
        if self.quota.take(page.len() as u64) {
            self.to.write_all(page)?;
            self.bytes.fetch_add(page.len() as u64, Ordering::Release);
        } else {
            self.quota.leave_out(page.len() as u64);
        }
        Ok(true)
    }
}
