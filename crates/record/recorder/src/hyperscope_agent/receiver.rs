//! Threads that receive a guest's page streams.

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

/// Max bytes per read; less with many streams, so that all of them together read at most [`ALL_READ_BYTES`] at once.
const READ_BYTES: usize = 256 << 10;
const ALL_READ_BYTES: usize = 16 << 20;
/// Max time of a single wait; nothing happens in between.
const LOOK: Duration = Duration::from_secs(60);
/// Max time for the bytes after a batch of pages to arrive before the batch counts as complete.
const CONFIRM: Duration = Duration::from_millis(200);
/// After the agent's last message, a stream counts as complete if nothing arrives for this time. It is shorter than the
/// time that guests have to end.
const REST: Duration = Duration::from_millis(300);

/// Threads that receive a guest's page streams.
#[derive(Debug)]
pub(crate) struct Receivers {
    session: u64,
    files: Arc<GuestFiles>,
    /// Set after the agent's last message.
    stop: Signal,
    ending: Ending,
    read_bytes: usize,
    threads: Mutex<Vec<Task<io::Result<()>>>>,
}

/// Max page streams of a guest.
const MAX_STREAMS: usize = 512;

impl Receivers {
    /// For a guest that will open its own page streams.
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

    /// Starts receiving another stream.
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

    /// Starts reading the rings in shared memory.
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

    /// Waits for pages in transit until the deadline; returns errors.
    pub(crate) fn end(&self, until: Deadline) -> Vec<io::Error> {
        self.stop.set();
        let threads = std::mem::take(&mut *self.threads.lock());
        let end = |task: Task<io::Result<()>>| match task.end(Wait::until(until)) {
            Outcome::Done(ended) => ended.err(),
            Outcome::Panicked => Some(io::Error::other("its thread panicked")),
            Outcome::StillBusy => Some(io::Error::other("its thread did not end")),
        };
        let mut faults: Vec<io::Error> = threads.into_iter().filter_map(end).collect();
        // One error is enough if hundreds of streams fail the same way.
        faults.dedup_by_key(|fault| fault.to_string());
        faults
    }
}

/// The fault for page streams that had not ended when the wait was over.
const CUT: &str = "page streams continued after the end and were closed";

/// State of a receiving thread.
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
            // Checked before each read: an endless stream must end, too.
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
                // The guest, or its machine, is gone: the pages before count.
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

/// Discards what an earlier recording left in the rings, as far as time permits.
pub(crate) fn discard(rings: &mut [PageConsumer], limit: &StartLimit) {
    for ring in rings {
        let mut page = vec![0; ring.page_bytes()];
        // A ring has at most this many pages, unless the guest is filling it right now.
        for at in 0..MAX_IN_RING {
            let is_late = at % AT_ONCE == 0 && limit.wait(|wait| wait.is_over());
            if is_late || ring.next_into(&mut page).is_none() {
                break;
            }
        }
    }
}

/// Max pages of a ring, far more than a real one has.
const MAX_IN_RING: u32 = 1 << 20;
/// Pages read from a ring before the next one has its turn.
const AT_ONCE: u32 = 64;

/// Fails if a ring was damaged: uncounted pages may be missing.
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
            // Checked before the rings are read: pages that were in them at that time are read.
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
            // A guest may fill its rings endlessly.
            if self.ending.is_over() {
                sound(&rings)?;
                return Err(io::Error::new(io::ErrorKind::TimedOut, CUT));
            }
            if let Pause::Sleep(time) = poller.looked(found) {
                self.stop.wait(time);
            }
        }
    }

    /// Reads some pages of a ring; true if there were any.
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
