//! Threads that take the pages of one CPU each: bare pages, until the connection ends.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use channel::Stream;
use channel::wire::PageHead;
use os::confine::Confined;
use os::waits::{Deadline, Signal, Wait};

use crate::ending::Ending;
use crate::guest::GuestFiles;
use crate::task::{Outcome, Task};

/// Bytes read at once, fewer where there are many streams; less than a page is kept until the rest
/// comes.
const READ_BYTES: usize = 256 << 10;
const ALL_READ_BYTES: usize = 16 << 20;
/// The longest single wait; nothing happens in between.
const LOOK: Duration = Duration::from_secs(60);
/// How long nothing may come after the agent has said that it has sent everything, within the time
/// that guests have for their end.
const REST: Duration = Duration::from_secs(2);

/// A thread that takes one CPU's pages.
#[derive(Debug)]
pub(super) struct PageStream {
    cpu: u32,
    task: Task<io::Result<()>>,
}

/// What such a thread knows.
#[derive(Clone, Debug)]
pub(super) struct PageTaker {
    pub(super) files: Arc<GuestFiles>,
    /// The agent says nothing any more.
    pub(super) stop: Signal,
    pub(super) ending: Ending,
    /// Streams of the guest.
    pub(super) streams: usize,
}

impl PageStream {
    pub(super) fn start(cpu: u32, stream: Stream, taker: PageTaker) -> io::Result<Self> {
        let task = Task::spawn(format!("guest-cpu{cpu}"), Confined::Reader, move || {
            taker.take(cpu, &stream)
        })?;
        Ok(Self { cpu, task })
    }

    /// Waits for its end, no longer than this: the CPU, and whether its pages came to the end.
    pub(super) fn end(self, until: Deadline) -> (u32, io::Result<()>) {
        let ended = match self.task.end(Wait::until(until)) {
            Outcome::Done(ended) => ended,
            Outcome::Panicked => Err(io::Error::other("its thread panicked")),
            Outcome::StillBusy => Err(io::Error::other("its thread did not end")),
        };
        (self.cpu, ended)
    }
}

impl PageTaker {
    fn take(&self, cpu: u32, stream: &Stream) -> io::Result<()> {
        let page_bytes = self.files.page_bytes();
        let read_bytes = (ALL_READ_BYTES / self.streams.max(1)).min(READ_BYTES);
        let mut buffer = vec![0; read_bytes.max(1).next_multiple_of(page_bytes)];
        // How much of the buffer is used, and what was added to the files before.
        let (mut used, mut offset) = (0, 0_u64);
        let ended = loop {
            // Asked before each read: a stream that never runs dry must end, too.
            if self.ending.is_over() {
                break Err(io::Error::other("the agent did not finish them in time"));
            }
            match self.read(stream, buffer.get_mut(used..).unwrap_or_default()) {
                Ok(Some(0)) => break Ok(()),
                Ok(Some(read)) => used += read,
                Ok(None) => continue,
                Err(error) => break Err(error),
            }
            let whole_bytes = used - used % page_bytes;
            if whole_bytes > 0 {
                let bytes = u32::try_from(whole_bytes).unwrap_or(u32::MAX);
                let head = PageHead { cpu, session: 0, offset, bytes };
                self.files.add(&head, buffer.get_mut(..whole_bytes).unwrap_or_default());
                offset += whole_bytes as u64;
                buffer.copy_within(whole_bytes..used, 0);
                used -= whole_bytes;
            }
        };
        self.files.note_malformed(used as u64);
        ended
    }

    /// Reads what comes; None when nothing has, and more may.
    fn read(&self, stream: &Stream, room: &mut [u8]) -> io::Result<Option<usize>> {
        let is_last = self.stop.is_set();
        let early = [self.stop.fd(), self.ending.cut().fd()];
        let wait = match self.ending.until() {
            Some(until) if is_last => Wait::until(until.min(Deadline::after(REST))),
            _ if is_last => Wait::at_most(REST),
            _ => Wait::at_most(LOOK).or(&early),
        };
        match stream.read(room, wait) {
            Ok(read) => Ok(Some(read)),
            Err(error) if error.kind() == io::ErrorKind::TimedOut && is_last => {
                Err(io::Error::other("the agent did not finish them"))
            }
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(None),
            // The guest, or the machine it is in, is gone: what came before counts.
            Err(error) => Err(error),
        }
    }
}
