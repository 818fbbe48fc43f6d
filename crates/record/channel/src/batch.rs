//! Moves a few pages and their head from the kernel's buffer to a stream, without copying them.
//!
//! The head has the number of bytes that follow, which is known only after pages were taken. So pages go through one
//! pipe, and head and pages through another. Moving a page from pipe to pipe moves only a reference.

use std::io;
use std::ops::Range;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use tracefs::RawPages;

/// Pages per batch. A pipe holds 16 without resizing, and a lost batch costs at most these.
const PAGES: usize = 16;

/// The two pipes.
#[derive(Debug)]
pub(crate) struct Batch {
    pages: (OwnedFd, OwnedFd),
    outgoing: (OwnedFd, OwnedFd),
    /// Bytes to send.
    remaining: usize,
    /// For streams without splice: bytes taken out of the pipe, and the range that is still to be written.
    room: Box<[u8; 4096]>,
    copied: Range<usize>,
}

impl Batch {
    pub(crate) fn new(page_size: usize) -> io::Result<Self> {
        let flags = PipeFlags::CLOEXEC | PipeFlags::NONBLOCK;
        let (pages, outgoing) = (pipe_with(flags)?, pipe_with(flags)?);
        // A pipe needs a slot for each page and one for the head; the kernel counts its own pages.
        let _ = fcntl_setpipe_size(&pages.1, PAGES * page_size);
        let _ = fcntl_setpipe_size(&outgoing.1, 2 * PAGES * page_size);
        Ok(Self { pages, outgoing, remaining: 0, room: Box::new([0; 4096]), copied: 0..0 })
    }

    /// Takes the full pages that are ready; returns their size, 0 if there are none.
    pub(crate) fn take(&mut self, from: &RawPages) -> io::Result<usize> {
        from.splice_to(&self.pages.1, PAGES * from.page_size())
    }

    /// Puts the head before the pages that were taken.
    pub(crate) fn lead(&mut self, head: &[u8], mut bytes: usize) -> io::Result<()> {
        self.remaining = rustix::io::write(&self.outgoing.1, head)?;
        while bytes > 0 {
            let moved =
                splice(&self.pages.0, None, &self.outgoing.1, None, bytes, SpliceFlags::MOVE)?;
            if moved == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            (bytes, self.remaining) = (bytes - moved, self.remaining + moved);
        }
        Ok(())
    }

    /// Bytes still to send.
    pub(crate) fn remaining(&self) -> usize {
        self.remaining
    }

    /// Sends as much as the stream accepts now; returns the number of bytes.
    pub(crate) fn send_to(&mut self, to: BorrowedFd<'_>) -> io::Result<usize> {
        let moved =
            match splice(&self.outgoing.0, None, to, None, self.remaining, SpliceFlags::NONBLOCK) {
                // A target without splice gets a write.
                Err(rustix::io::Errno::INVAL) => self.write_to(to)?,
                other => other?,
            };
        self.remaining -= moved.min(self.remaining);
        Ok(moved)
    }

    fn write_to(&mut self, to: BorrowedFd<'_>) -> io::Result<usize> {
        if self.copied.is_empty() {
            let Self { copied, room, .. } = self;
            let read = rustix::io::read(&self.outgoing.0, room.as_mut_slice())?;
            *copied = 0..read;
        }
        let written =
            rustix::io::write(to, self.room.get(self.copied.clone()).unwrap_or_default())?;
        self.copied.start += written;
        Ok(written)
    }

    /// Discards what was not sent.
    pub(crate) fn drop_rest(&mut self) {
        let mut bytes = [0; 4096];
        for pipe in [&self.pages.0, &self.outgoing.0] {
            while rustix::io::read(pipe, &mut bytes).is_ok_and(|read| read > 0) {}
        }
        (self.remaining, self.copied) = (0, 0..0);
    }
}
