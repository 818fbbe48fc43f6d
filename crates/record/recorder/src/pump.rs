//! Moves pages from the kernel's buffer of one CPU to a file: spliced, not copied through here.

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

/// What one splice moves at most.
const SPLICE_BYTES: usize = 1 << 20;

/// A thread that empties one CPU's buffer.
#[derive(Debug)]
pub(crate) struct Pump {
    pub(crate) cpu: u32,
    bytes: Arc<AtomicU64>,
    /// Its file, for syncing to the disk.
    growing: Option<Growing>,
    thread: JoinHandle<io::Result<()>>,
}

impl Pump {
    /// Begins to move pages to the end of the CPU's file: a new one, or one that another recorder wrote.
    /// What that left of its last page can't be completed: the rest of it is gone. With `flush`, no
    /// event stays in the kernel's buffer for longer.
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

    /// Its file, as it grows; once.
    pub(crate) fn growing(&mut self) -> Option<Growing> {
        self.growing.take()
    }

    /// Bytes moved so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether it has ended, as it does early only when something failed.
    pub(crate) fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for its end: bytes moved in all, and whether that was to the end.
    pub(crate) fn join(self) -> (u64, io::Result<()>) {
        let ended = self.thread.join();
        let ended = ended.unwrap_or_else(|_| Err(io::Error::other("its thread panicked")));
        (self.bytes.load(Ordering::Relaxed), ended)
    }
}

/// The two ends, and the pipe that pages go through.
struct Mover {
    from: RawPages,
    to: OutFile,
    pipe: (OwnedFd, OwnedFd),
    bytes: Arc<AtomicU64>,
    quota: Quota,
    /// How long an event may stay in the kernel's buffer.
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
        // A pipe that stays small moves less at once, and as much in all.
        let _ = fcntl_setpipe_size(&pipe.1, SPLICE_BYTES);
        Ok(Self { from, to, pipe, bytes, quota, flush })
    }

    fn run(mut self, stop: &Signal) -> io::Result<()> {
        let mut page = vec![0; self.from.page_size()];
        let mut flushed = Instant::now();
        loop {
            // From one flush to the next, however often full pages wake this thread in between.
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

    /// Moves whole pages; false when there is none now, or no quota for as many as there may be: then
    /// the recording ends, and they stay in the kernel's buffer until it has.
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

    /// Copies a page: the one that is not full, which a splice leaves in the buffer, or one that the
    /// quota for whole splices was not enough for. False when there is none.
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
