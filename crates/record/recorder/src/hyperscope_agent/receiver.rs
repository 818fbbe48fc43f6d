//! Threads that take what a guest sends on its page streams.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use channel::wire::{PageDecoder, Piece};
use channel::{PageConsumer, Pause, Poller, Stream};
use os::confine::Confined;
use os::waits::{Deadline, Signal, Wait};
use parking_lot::Mutex;

use crate::ending::{Ending, StartLimit, stop_signal};
use crate::error::Result;
use crate::guest::{Arriving, GuestFiles};
use crate::task::{Outcome, Task};

/// Bytes read at once; fewer where there are many streams, so that all of them read no more at once
/// than [`ALL_READ_BYTES`].
const READ_BYTES: usize = 256 << 10;
const ALL_READ_BYTES: usize = 16 << 20;
/// The longest single wait; nothing happens in between.
const LOOK: Duration = Duration::from_secs(60);
/// How long the bytes after a batch of pages may take before the batch counts as whole.
const CONFIRM: Duration = Duration::from_millis(200);
/// How long nothing may come after the agent has said that it has sent everything, before that is
/// believed. Within the time that guests have for their end.
const REST: Duration = Duration::from_millis(300);

/// Threads that take the page streams of one guest.
#[derive(Debug)]
pub(crate) struct Receivers {
    session: u64,
    files: Arc<GuestFiles>,
    /// The agent says nothing any more.
    stop: Signal,
    ending: Ending,
    read_bytes: usize,
    threads: Mutex<Vec<Task<io::Result<()>>>>,
}

/// Page streams that a guest may have.
const MAX_STREAMS: usize = 512;

impl Receivers {
    /// For a guest that says how many page streams it makes.
    pub(crate) fn new(
        session: u64,
        files: Arc<GuestFiles>,
        streams: u32,
        ending: &Ending,
    ) -> Result<Self> {
        let (stop, ending) = (stop_signal()?, ending.clone());
        let read_bytes =
            (ALL_READ_BYTES / (streams as usize).clamp(1, MAX_STREAMS)).min(READ_BYTES);
        Ok(Self { session, files, stop, ending, read_bytes, threads: Mutex::default() })
    }

    /// Begins to take the pages of one more stream.
    pub(crate) fn add(&self, stream: Stream) -> io::Result<()> {
        let mut threads = self.threads.lock();
        if threads.len() >= MAX_STREAMS {
            return Err(io::Error::other("it opens more page streams than any guest needs"));
        }
        let taker = Taker {
            files: Arc::clone(&self.files),
            stop: self.stop.clone(),
            ending: self.ending.clone(),
        };
        let (session, read_bytes) = (self.session, self.read_bytes);
        let task =
            Task::spawn(format!("guest-pages{}", threads.len()), Confined::Reader, move || {
                taker.take_stream(&stream, session, read_bytes)
            })?;
        threads.push(task);
        Ok(())
    }

    /// Begins to take the pages of rings in shared memory.
    pub(crate) fn add_rings(&self, rings: Vec<PageConsumer>) -> io::Result<()> {
        if rings.is_empty() {
            return Ok(());
        }
        let taker = Taker {
            files: Arc::clone(&self.files),
            stop: self.stop.clone(),
            ending: self.ending.clone(),
        };
        let task =
            Task::spawn("guest-rings".into(), Confined::Reader, move || taker.take_rings(rings))?;
        self.threads.lock().push(task);
        Ok(())
    }

    /// Waits until what is still on its way has come, no longer than this; what went wrong.
    pub(crate) fn end(&self, until: Deadline) -> Vec<io::Error> {
        self.stop.set();
        let threads = std::mem::take(&mut *self.threads.lock());
        let end = |task: Task<io::Result<()>>| match task.end(Wait::until(until)) {
            Outcome::Done(ended) => ended.err(),
            Outcome::Panicked => Some(io::Error::other("its thread panicked")),
            Outcome::StillBusy => Some(io::Error::other("its thread did not end")),
        };
        let mut faults: Vec<io::Error> = threads.into_iter().filter_map(end).collect();
        // Of hundreds of streams one is enough to report.
        faults.dedup_by_key(|fault| fault.to_string());
        faults
    }
}

/// The fault for page streams that had not ended when the wait was over.
const CUT: &str = "page streams continued after the end and were closed";

/// What a thread that takes pages knows.
struct Taker {
    files: Arc<GuestFiles>,
    stop: Signal,
    ending: Ending,
}

impl Taker {
    fn take_stream(&self, stream: &Stream, session: u64, read_bytes: usize) -> io::Result<()> {
        let mut buffer = vec![0; read_bytes];
        let mut decoder = PageDecoder::new(session);
        let mut arriving = Arriving::new(&self.files);
        let ended = loop {
            // Asked before each read: a stream that never runs dry must end, too.
            if self.ending.is_over() {
                break Err(io::Error::new(io::ErrorKind::TimedOut, CUT));
            }
            let is_last = self.stop.is_set();
            let early = [self.stop.fd(), self.ending.cut().fd()];
            let wait = match self.ending.until() {
                Some(until) if is_last => Wait::until(until.min(Deadline::after(REST))),
                _ if is_last => Wait::at_most(REST),
                _ if arriving.is_whole() => Wait::at_most(CONFIRM).or(&early),
                _ => Wait::at_most(LOOK).or(&early),
            };
            let read = match stream.read(&mut buffer, wait) {
                Ok(0) => break Ok(()),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::TimedOut && is_last => break Ok(()),
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    arriving.flush();
                    continue;
                }
                // The guest, or the machine it is in, is gone: what came before counts.
                Err(_) => break Ok(()),
            };
            let Ok(()) = decoder.push(buffer.get(..read).unwrap_or_default(), |piece| {
                match piece {
                    Piece::Head(head) => arriving.head(head),
                    Piece::Pages(bytes) => arriving.pages(bytes),
                    Piece::Skipped(bytes) => arriving.malformed(bytes),
                }
                Ok::<(), Infallible>(())
            });
        };
        arriving.end();
        ended
    }
}

/// Leaves out what a recording before has left in rings, as far as there is time for that.
pub(crate) fn discard(rings: &mut [PageConsumer], limit: &StartLimit) {
    for ring in rings {
        let mut page = vec![0; ring.page_bytes()];
        // A ring has no more pages than these unless somebody fills it right now.
        for at in 0..MAX_IN_RING {
            let is_late = at % AT_ONCE == 0 && limit.wait(|wait| wait.is_over());
            if is_late || ring.next_into(&mut page).is_none() {
                break;
            }
        }
    }
}

/// Pages that a ring may have; far more than any does.
const MAX_IN_RING: u32 = 1 << 20;
/// Pages taken of one ring before the next has its turn.
const AT_ONCE: u32 = 64;

/// Whether the rings were valid; otherwise uncounted pages may be missing.
fn sound(rings: &[PageConsumer]) -> io::Result<()> {
    let damage = rings.iter().map(|ring| ring.totals().damage).fold(0, u64::saturating_add);
    if damage == 0 {
        return Ok(());
    }
    Err(io::Error::other(format!("the shared memory was invalid {damage} times")))
}

impl Taker {
    fn take_rings(&self, mut rings: Vec<PageConsumer>) -> io::Result<()> {
        let longest = rings.iter().map(PageConsumer::page_bytes).max().unwrap_or(0);
        let (mut page, mut poller) = (vec![0; longest], Poller::default());
        loop {
            // Asked before the rings: what was in them by then is taken.
            let is_last = self.stop.is_set();
            let mut found = false;
            for ring in &mut rings {
                found |= self.take_ring(ring, &mut page);
            }
            if !found {
                rings.iter().try_for_each(PageConsumer::check)?;
            }
            if is_last && !found {
                return sound(&rings);
            }
            // A guest may fill its rings for ever.
            if self.ending.is_over() {
                sound(&rings)?;
                return Err(io::Error::new(io::ErrorKind::TimedOut, CUT));
            }
            if let Pause::Sleep(time) = poller.looked(found) {
                self.stop.wait(time);
            }
        }
    }

    /// Takes some pages of a ring; whether there were any.
    fn take_ring(&self, ring: &mut PageConsumer, page: &mut [u8]) -> bool {
        let page = page.get_mut(..ring.page_bytes()).unwrap_or_default();
        for at in 0..AT_ONCE {
            let Some(taken_page) = ring.next_into(page) else { return at > 0 };
            let cpu = u32::try_from(ring.cpu()).unwrap_or(u32::MAX);
            self.files.add_in_order(cpu, taken_page.missed_pages, page);
        }
        true
    }
}
