//! Moves a CPU's pages from the kernel's buffer to a page stream during a recording.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use channel::{PageSink, Sent};
use os::confine::Confined;
use os::waits::{Signal, Wait};
use parking_lot::Mutex;
use raw_bytes::counted;
use tracefs::RawPages;

/// Signals to all pumps of a recording.
#[derive(Clone, Debug)]
pub(crate) struct Signals {
    /// The recording is over: send what is left.
    pub(crate) stop: Signal,
    /// The host is gone: send nothing.
    pub(crate) abort: Signal,
}

/// A pump's counts so far.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    bytes: AtomicU64,
    wakeups: AtomicU64,
}

impl Counts {
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn wakeups(&self) -> u64 {
        self.wakeups.load(Ordering::Relaxed)
    }
}

/// A pump's totals.
#[derive(Debug)]
pub(crate) struct Pumped {
    pub(crate) cpu: u32,
    pub(crate) sent: Sent,
    pub(crate) fault: Option<String>,
}

/// A thread that empties one CPU's buffer.
#[derive(Debug)]
pub(crate) struct Pump {
    pub(crate) cpu: u32,
    pub(crate) counts: Arc<Counts>,
    thread: JoinHandle<Pumped>,
}

/// Max time for a stream to accept a page: as long as a recording runs. The kernel continues to record meanwhile, and
/// counts what it drops.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);

impl Pump {
    /// Starts moving pages.
    pub(crate) fn start(
        cpu: u32,
        from: RawPages,
        to: Arc<Mutex<PageSink>>,
        flush: Option<Duration>,
        signals: Signals,
    ) -> io::Result<Self> {
        let counts = Arc::new(Counts::default());
        let mover =
            Mover { cpu, from, to, flush, signals, counts: counts.clone(), sent: Sent::default() };
        let thread =
            thread::Builder::new().name(format!("hyperscope-p{cpu}")).spawn(move || {
                Confined::WORKER.enter();
                mover.run()
            })?;
        Ok(Self { cpu, counts, thread })
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    pub(crate) fn join(self) -> Pumped {
        let (cpu, sent) = (self.cpu, Sent { bytes: self.counts.bytes(), lost_bytes: 0 });
        let died = |_| Pumped { cpu, sent, fault: Some("its thread panicked".into()) };
        self.thread.join().unwrap_or_else(died)
    }
}

struct Mover {
    cpu: u32,
    from: RawPages,
    to: Arc<Mutex<PageSink>>,
    /// Max time that events stay in the kernel's buffer.
    flush: Option<Duration>,
    signals: Signals,
    counts: Arc<Counts>,
    sent: Sent,
}

impl Mover {
    fn run(mut self) -> Pumped {
        let result = self.pump();
        let lost = self.sent.lost_bytes;
        let lost = (lost > 0).then(|| {
            let lost = counted(lost, "byte was", "bytes were");
            format!("{lost} lost on the channel")
        });
        let fault = result.err().map(|error| error.to_string()).or(lost);
        Pumped { cpu: self.cpu, sent: self.sent, fault }
    }

    fn pump(&mut self) -> io::Result<()> {
        let mut flushed = Instant::now();
        loop {
            // Time since the last flush, however often full pages wake this thread in between.
            let remaining = self.flush.map(|flush| flush.saturating_sub(flushed.elapsed()));
            let woken = self.from.wait(self.signals.stop.fd(), remaining)?;
            self.counts.wakeups.fetch_add(1, Ordering::Relaxed);
            while self.send()? {}
            if woken.other {
                return self.rest();
            }
            if self.flush.is_some_and(|flush| flushed.elapsed() >= flush) {
                self.part()?;
                flushed = Instant::now();
            }
        }
    }

    fn send(&mut self) -> io::Result<bool> {
        let abort = [self.signals.abort.fd()];
        let wait = Wait::at_most(PATIENCE).or(&abort);
        let mut to = self.to.lock();
        let more = to.send(self.cpu, &self.from, &mut self.sent, wait)?;
        self.counts.bytes.store(self.sent.bytes, Ordering::Relaxed);
        Ok(more)
    }

    /// Sends the partial page. Without a stream, the page stays in the kernel.
    fn part(&mut self) -> io::Result<()> {
        let abort = [self.signals.abort.fd()];
        let wait = Wait::at_most(PATIENCE).or(&abort);
        if !self.to.lock().is_open(wait) {
            return Ok(());
        }
        let mut page = vec![0; self.from.page_size()];
        if self.from.read_page(&mut page)? {
            self.copy(&page)?;
        }
        Ok(())
    }

    /// Sends the partial page and the end mark.
    fn rest(&mut self) -> io::Result<()> {
        let mut page = vec![0; self.from.page_size()];
        while self.from.read_page(&mut page)? {
            self.copy(&page)?;
        }
        self.copy(&[])
    }

    /// Sends a page, or the end mark.
    fn copy(&mut self, page: &[u8]) -> io::Result<()> {
        let abort = [self.signals.abort.fd()];
        let wait = Wait::at_most(PATIENCE).or(&abort);
        let mut to = self.to.lock();
        to.send_copy(self.cpu, page, &mut self.sent, wait)?;
        self.counts.bytes.store(self.sent.bytes, Ordering::Relaxed);
        Ok(())
    }
}
