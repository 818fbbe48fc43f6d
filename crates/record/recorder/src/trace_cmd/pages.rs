//! Threads that receive one CPU's pages each: pages without heads, until the connection closes.

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

/// Max bytes per read, less with many streams. An incomplete page is kept until the rest arrives.
const READ_BYTES: usize = 256 << 10;
const ALL_READ_BYTES: usize = 16 << 20;
/// Max time of a single wait; nothing happens in between.
const LOOK: Duration = Duration::from_secs(60);
/// After the agent's last message, a stream counts as complete if nothing arrives for this time. It is shorter than the
/// time that guests have to end.
const REST: Duration = Duration::from_secs(2);

/// A thread that receives a CPU's pages.
#[derive(Debug)]
pub(super) struct PageStream {
    cpu: u32,
    task: Task<io::Result<()>>,
}

/// State of such a thread.
#[derive(Clone, Debug)]
pub(super) struct PageTaker {
    pub(super) files: Arc<GuestFiles>,
    /// Set after the agent's last message.
    pub(super) stop: Signal,
    pub(super) ending: Ending,
    /// Number of streams of the guest.
    pub(super) streams: usize,
}

impl PageStream {
    pub(super) fn start(cpu: u32, stream: Stream, taker: PageTaker) -> io::Result<Self> {
        let task = Task::spawn(format!("guest-cpu{cpu}"), Confined::Reader, move || {
            taker.take(cpu, &stream)
        })?;
        Ok(Self { cpu, task })
    }

    /// Waits for its end until the deadline; returns the CPU, and the error if its pages are incomplete.
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
        // Used part of the buffer, and bytes added to the files before.
        let (mut used, mut offset) = (0, 0_u64);
        let ended = loop {
            // Checked before each read: an endless stream must end, too.
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

    /// Reads available bytes; `None` if nothing has arrived and more may follow.
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
            // The guest, or its machine, is gone: the pages before count.
            Err(error) => Err(error),
        }
    }
}
