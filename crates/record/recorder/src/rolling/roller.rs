//! A thread that empties a CPU's buffer into segments, and starts a new one on request.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use os::confine::Confined;
use os::folder::{Folder, OutFile};
use os::waits::Signal;
use parking_lot::Mutex;
use rustix::fd::OwnedFd;
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use tracefs::{RawPages, StatsFile};

use super::generation::Segment;
use super::growing::Growing;
use crate::error::{RecordError, Result};
use crate::guest::PageShape;
use crate::pages_folder::segment_file;

/// Max bytes per splice.
const SPLICE_BYTES: usize = 1 << 20;
/// Max time of a single wait for the end of a generation that has reached its limit.
const LOOK: Duration = Duration::from_millis(100);

/// Requests to all rollers.
#[derive(Clone, Debug)]
pub(crate) struct Orders(Arc<Mutex<(u64, Signal)>>);

impl Orders {
    /// Starts with the first generation.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(Mutex::new((0, Signal::new()?)))))
    }

    /// The signal at the end of a generation; `None` if it has ended already.
    fn end_of(&self, generation: u64) -> Option<Signal> {
        let order = self.0.lock();
        (order.0 == generation).then(|| order.1.clone())
    }

    /// Ends the current generation; returns its number.
    pub(crate) fn roll(&self) -> io::Result<u64> {
        let next = Signal::new()?;
        let mut order = self.0.lock();
        let (number, ended) = (order.0, std::mem::replace(&mut order.1, next));
        order.0 += 1;
        ended.set();
        Ok(number)
    }
}

/// The thread.
#[derive(Debug)]
pub(crate) struct Roller {
    pub(crate) cpu: u32,
    thread: JoinHandle<io::Result<()>>,
}

/// A roller's source of pages, and the destination of its segments.
pub(crate) struct Rolls {
    pub(crate) cpu: u32,
    pub(crate) from: RawPages,
    pub(crate) stats: StatsFile,
    pub(crate) to: Folder,
    pub(crate) shape: PageShape,
    pub(crate) growing: Growing,
    /// Max bytes of pages in the kernel's buffer.
    pub(crate) buffer_bytes: usize,
}

impl Roller {
    /// Starts reading pages; sends ended segments to `ended`.
    pub(crate) fn start(
        rolls: Rolls,
        orders: Orders,
        stop: Signal,
        ended: Sender<Segment>,
    ) -> Result<Self> {
        let (cpu, path) = (rolls.cpu, rolls.to.path().join(segment_file(rolls.cpu, 0)));
        let pipe = pipe_with(PipeFlags::CLOEXEC).map_err(io::Error::from);
        let pipe = pipe.map_err(RecordError::io("make a pipe for", &path))?;
        // A pipe that can't grow moves less per splice, but as much in total.
        let _ = fcntl_setpipe_size(&pipe.1, SPLICE_BYTES);
        let begin = rolls.stats.now().map_err(RecordError::io("read the counts of", &path))?;
        let segment = Segment { cpu, begin, ..Segment::default() };
        let mover = Mover { rolls, pipe, segment, file: None, missed: false };
        let thread = thread::Builder::new()
            .name(format!("hyperscope-r{cpu}"))
            .spawn(move || {
                Confined::WORKER.enter();
                mover.run(&orders, &stop, &ended)
            })
            .map_err(RecordError::io("start a thread for", &path))?;
        Ok(Self { cpu, thread })
    }

    /// Whether the thread has ended: early only if the kernel's buffer can't be read.
    pub(crate) fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for the end, after it was requested.
    pub(crate) fn join(self) -> io::Result<()> {
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("its thread panicked")))
    }
}

struct Mover {
    rolls: Rolls,
    pipe: (OwnedFd, OwnedFd),
    /// The current segment.
    segment: Segment,
    file: Option<OutFile>,
    /// Pages before the next one could not be written.
    missed: bool,
}

impl Mover {
    fn run(mut self, orders: &Orders, stop: &Signal, ended: &Sender<Segment>) -> io::Result<()> {
        let mut page = vec![0; self.rolls.from.page_size()];
        loop {
            if let Some(end) = orders.end_of(self.segment.number) {
                self.take_until(&end, stop, &mut page)?;
            }
            if stop.is_set() {
                return Ok(());
            }
            let segment = self.end_segment(&mut page)?;
            // The receiver may be gone by now.
            let _ = ended.send(segment);
        }
    }

    /// Reads pages until the generation or the recording ends.
    fn take_until(&mut self, end: &Signal, stop: &Signal, page: &mut [u8]) -> io::Result<()> {
        let is_over = || end.is_set() || stop.is_set();
        while !is_over() {
            if self.rolls.growing.is_more_than_may_be() {
                // Pages stay in the kernel, which counts those that do not fit.
                end.wait(LOOK);
                continue;
            }
            self.rolls.from.wait(end.fd(), None)?;
            // During a flood of events pages never end: check for the end after each splice.
            while !is_over() && !self.rolls.growing.is_more_than_may_be() && self.splice(page)? > 0
            {
            }
        }
        Ok(())
    }

    /// Ends the segment, with all events up to the request.
    fn end_segment(&mut self, page: &mut [u8]) -> io::Result<Segment> {
        let end = self.rolls.stats.now()?;
        self.take_what_is_there(page)?;
        let next = self.rolls.stats.now()?;
        self.file = None;
        self.rolls.growing.take_away(self.segment.bytes);
        let number = self.segment.number + 1;
        let new_segment =
            Segment { cpu: self.rolls.cpu, number, begin: next.clone(), ..Segment::default() };
        Ok(Segment { end, next, ..std::mem::replace(&mut self.segment, new_segment) })
    }

    /// Reads all available pages, including the one being written. During a flood new ones arrive meanwhile: the oldest
    /// come first, so it is enough to read as many as the buffer holds.
    fn take_what_is_there(&mut self, page: &mut [u8]) -> io::Result<()> {
        let max = self.rolls.buffer_bytes;
        let mut total = 0;
        for _ in 0..2 {
            loop {
                let moved = self.splice(page)?;
                total += moved;
                if moved == 0 || total > max {
                    break;
                }
            }
            // The partial page may have filled since the last check: the second round reads the pages after it.
            self.copy(page)?;
        }
        Ok(())
    }

    /// Moves whole pages; returns their size, 0 if there are none now.
    fn splice(&mut self, page: &mut [u8]) -> io::Result<usize> {
        let moved = self.rolls.from.splice_to(&self.pipe.1, SPLICE_BYTES)?;
        if moved == 0 {
            return Ok(0);
        }
        if self.missed || self.file().is_err() {
            // The first page is marked: some before it are missing.
            self.take_by_page(page, moved)?;
            return Ok(moved);
        }
        let mut remaining = moved;
        while remaining > 0 {
            match self.splice_out(remaining) {
                Ok(written) if written > 0 => remaining -= written,
                _ => {
                    self.cut();
                    self.skip(page, moved, remaining)?;
                    break;
                }
            }
        }
        Ok(moved)
    }

    fn splice_out(&mut self, max: usize) -> io::Result<usize> {
        let file = self.file.as_mut().ok_or(io::ErrorKind::NotFound)?;
        let written = file.splice_from(&self.pipe.0, max)?;
        self.grow(written as u64);
        Ok(written)
    }

    /// Drops the pages in the pipe that did not fit on the disk.
    fn skip(&mut self, page: &mut [u8], moved: usize, remaining: usize) -> io::Result<()> {
        let part = (moved - remaining) % page.len();
        self.segment.unwritten += (remaining + part) as u64;
        self.missed = true;
        let mut pipe = std::fs::File::from(rustix::io::dup(&self.pipe.0)?);
        io::copy(&mut (&mut pipe).take(remaining as u64), &mut io::sink())?;
        Ok(())
    }

    /// Reads pages from the pipe one by one.
    fn take_by_page(&mut self, page: &mut [u8], moved: usize) -> io::Result<()> {
        let mut pipe = std::fs::File::from(rustix::io::dup(&self.pipe.0)?);
        for _ in 0..moved / page.len() {
            pipe.read_exact(page)?;
            self.write(page);
        }
        Ok(())
    }

    /// Copies the next page, full or partial, if there is one.
    fn copy(&mut self, page: &mut [u8]) -> io::Result<()> {
        if self.rolls.from.read_page(page)? {
            self.write(page);
        }
        Ok(())
    }

    /// Writes a page. If it does not fit on the disk, counts it and marks the next one.
    fn write(&mut self, page: &mut [u8]) {
        let is_after_loss = self.missed;
        if is_after_loss {
            self.rolls.shape.mark_missed(page);
        }
        let written = self
            .file()
            .and_then(|()| self.file.as_mut().map_or(Ok(()), |file| file.write_all(page)));
        match written {
            Ok(()) => {
                self.missed = false;
                self.grow(page.len() as u64);
            }
            Err(_) => {
                self.cut();
                self.missed = true;
                self.segment.unwritten += page.len() as u64;
            }
        }
    }

    fn grow(&mut self, bytes: u64) {
        self.segment.bytes += bytes;
        self.rolls.growing.add(bytes);
    }

    /// Makes the segment's file, if there is none yet.
    fn file(&mut self) -> io::Result<()> {
        if self.file.is_none() {
            self.file = Some(self.rolls.to.create_new(&self.segment.file())?);
        }
        Ok(())
    }

    /// A partially written page is unreadable.
    fn cut(&mut self) {
        let page_bytes = self.rolls.from.page_size() as u64;
        let part = self.segment.bytes % page_bytes;
        self.segment.bytes -= part;
        self.rolls.growing.take_away(part);
        if let Some(file) = &mut self.file {
            // If truncation fails, readers still use only these bytes.
            let _ = file.cut(self.segment.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generation_that_ended_unseen_has_ended() {
        let orders = Orders::new().unwrap();
        let first = orders.end_of(0).unwrap();
        assert!(!first.is_set() && orders.end_of(1).is_none());
        assert_eq!((orders.roll().unwrap(), orders.roll().unwrap()), (0, 1));
        assert!(first.is_set() && orders.end_of(0).is_none() && orders.end_of(1).is_none());
        assert!(orders.end_of(2).is_some_and(|end| !end.is_set()));
    }
}
