//! Threads that take what a guest sends on its page streams.

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use channel::{PageConsumer, Pause, Poller, Signal, Stream, Wait};
use wire::{PageDecoder, Piece};

use crate::error::Result;
use crate::guest::files::{Arriving, GuestFiles};
use crate::pump::stop_signal;

/// Bytes read at once.
const READ_BYTES: usize = 256 << 10;
/// How long one waits at a time; nothing happens in between.
const LOOK: Duration = Duration::from_secs(60);
/// How long the bytes behind a batch of pages may take before it is believed to be whole.
const CONFIRM: Duration = Duration::from_millis(200);
/// How long what is still on its way may take after the end.
const REST: Duration = Duration::from_millis(300);

/// Threads that take the page streams of one guest.
#[derive(Debug)]
pub(crate) struct Receivers {
    session: u64,
    files: Arc<GuestFiles>,
    stop: Signal,
    threads: Mutex<Vec<JoinHandle<io::Result<()>>>>,
}

/// Page streams that a guest may have.
const MOST_STREAMS: usize = 512;

impl Receivers {
    pub(crate) fn new(session: u64, files: Arc<GuestFiles>) -> Result<Self> {
        Ok(Self { session, files, stop: stop_signal()?, threads: Mutex::default() })
    }

    /// Begins to take the pages of one more stream.
    pub(crate) fn add(&self, stream: Stream) -> io::Result<()> {
        let mut threads = self.threads();
        if threads.len() >= MOST_STREAMS {
            return Err(io::Error::other("it makes more page streams than any guest needs"));
        }
        let (session, files, stop) = (self.session, Arc::clone(&self.files), self.stop.clone());
        let builder = thread::Builder::new().name(format!("guest-pages{}", threads.len()));
        threads.push(builder.spawn(move || {
            receive(&stream, session, &files, &stop);
            Ok(())
        })?);
        Ok(())
    }

    /// Begins to take the pages of rings in shared memory.
    pub(crate) fn add_rings(&self, rings: Vec<PageConsumer>) -> io::Result<()> {
        if rings.is_empty() {
            return Ok(());
        }
        let (files, stop) = (Arc::clone(&self.files), self.stop.clone());
        let builder = thread::Builder::new().name("guest-rings".into());
        self.threads().push(builder.spawn(move || take_rings(rings, &files, &stop))?);
        Ok(())
    }

    /// Waits until what is still on its way has come; what went wrong.
    pub(crate) fn end(&self) -> Vec<io::Error> {
        self.stop.give();
        let threads = std::mem::take(&mut *self.threads());
        let join = |thread: JoinHandle<io::Result<()>>| {
            let died = |_| Err(io::Error::other("its thread panicked"));
            thread.join().unwrap_or_else(died).err()
        };
        let faults: Vec<io::Error> = threads.into_iter().filter_map(join).collect();
        faults.into_iter().chain(self.files.failure()).collect()
    }

    /// A list of threads is whole whatever happened while the lock was held.
    fn threads(&self) -> MutexGuard<'_, Vec<JoinHandle<io::Result<()>>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn receive(stream: &Stream, session: u64, files: &GuestFiles, stop: &Signal) {
    let mut buffer = vec![0; READ_BYTES];
    let mut decoder = PageDecoder::new(session);
    let mut arriving = Arriving::new(files);
    let mut is_over = false;
    let stops = [stop.fd()];
    loop {
        let wait = match is_over {
            false if arriving.is_whole() => Wait::at_most(CONFIRM).or(&stops),
            false => Wait::at_most(LOOK).or(&stops),
            true => Wait::at_most(REST),
        };
        let read = match stream.read(&mut buffer, wait) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::TimedOut && is_over => break,
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                arriving.flush();
                is_over = stop.is_given();
                continue;
            }
            // The guest, or the machine it is in, is gone: what came before counts.
            Err(_) => break,
        };
        let Ok(()) = decoder.push(buffer.get(..read).unwrap_or_default(), |piece| {
            match piece {
                Piece::Head(head) => arriving.head(head),
                Piece::Pages(bytes) => arriving.pages(bytes),
                Piece::Skipped(bytes) => arriving.senseless(bytes),
            }
            Ok::<(), Infallible>(())
        });
    }
    arriving.end();
}

/// Leaves out what a recording before has left in rings.
pub(crate) fn discard(rings: &mut [PageConsumer]) {
    for ring in rings {
        let mut page = vec![0; ring.page_bytes()];
        // A ring has no more pages than these unless somebody fills it right now.
        for _ in 0..MOST_IN_RING {
            if ring.next_into(&mut page).is_none() {
                break;
            }
        }
    }
}

/// Pages that a ring may have; far more than any does.
const MOST_IN_RING: u32 = 1 << 20;
/// Pages taken of one ring before the next has its turn.
const AT_ONCE: u32 = 64;

/// Whether the rings held what an agent writes; else pages may be missing that nobody has counted.
fn sound(rings: &[PageConsumer]) -> io::Result<()> {
    let damage = rings.iter().map(|ring| ring.totals().damage).fold(0, u64::saturating_add);
    if damage == 0 {
        return Ok(());
    }
    Err(io::Error::other(format!("{damage} times the memory held what no agent writes")))
}

fn take_rings(mut rings: Vec<PageConsumer>, files: &GuestFiles, stop: &Signal) -> io::Result<()> {
    let longest = rings.iter().map(PageConsumer::page_bytes).max().unwrap_or(0);
    let (mut page, mut poller) = (vec![0; longest], Poller::default());
    loop {
        // Asked before the rings: what was in them by then is taken.
        let is_over = stop.is_given();
        let mut found = false;
        for ring in &mut rings {
            for _ in 0..AT_ONCE {
                let page = page.get_mut(..ring.page_bytes()).unwrap_or_default();
                let Some(taken) = ring.next_into(page) else { break };
                found = true;
                let cpu = u32::try_from(ring.cpu()).unwrap_or(u32::MAX);
                files.add_in_order(cpu, taken.missed_pages, page);
            }
        }
        if !found {
            rings.iter().try_for_each(PageConsumer::check)?;
        }
        if is_over && !found {
            return sound(&rings);
        }
        if let Pause::Sleep(time) = poller.looked(found) {
            stop.wait(time);
        }
    }
}
