//! Collects guests' hypercalls with all their registers by BPF programs in a KVM host's kernel, and writes them to a
//! file next to the host's recording (`docs/formats/collected.md`).
//!
//! The programs are `bpf/collect.bpf.c`. File descriptors hold them in the kernel, so they disappear with the
//! [`Collector`] or its process. They write one record per hypercall, from exit to entry, into a ring buffer. A thread
//! moves the records to the file, and every second notes the BPF clock together with the clock of the recording.

mod error;
mod programs;
mod writer;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use hypertrace::collected::{Begin, Counts, VERSION};
use os::confine::CapabilitySet;
use os::folder::OutFile;
use os::waits::Signal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

pub use crate::collector::error::{CollectError, Result};
use crate::collector::programs::Programs;
use crate::collector::writer::Writer;
use tracefs::TraceClock;

/// Time between clock comparisons, and between flushes of the ring to the file.
const INTERVAL: Duration = Duration::from_secs(1);
/// The second comparison comes earlier: the first alone does not show the clocks' rates.
const FIRST_INTERVAL: Duration = Duration::from_millis(50);

/// What to collect.
#[derive(Clone, Debug)]
pub struct CollectorPlan {
    /// The recording's trace clock.
    pub clock: String,
    /// The recording's identity.
    pub trace_id: u64,
    /// The number of hypercalls that carry frames; marks have the next one.
    pub number: u64,
    /// Number of registers of each hypercall: 4 to 13.
    pub words: u8,
}

/// Results of a collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Counts of the BPF programs.
    pub counts: Counts,
    /// Number of hypercalls in the file.
    pub written: u64,
    /// Size of the file.
    pub bytes: u64,
}

/// Loaded programs that are not attached yet. Loading takes longest, and fails on kernels or users without support.
#[derive(Debug)]
pub struct Loaded {
    plan: CollectorPlan,
    clock: TraceClock,
    programs: Programs,
}

impl Loaded {
    /// Loads the programs.
    ///
    /// # Errors
    /// When the kernel lacks support, or the user lacks permission.
    pub fn load(plan: CollectorPlan) -> Result<Self> {
        let clock = TraceClock::open(&plan.clock).map_err(CollectError::clock(&plan.clock))?;
        let programs = Programs::load(plan.number, plan.words)?;
        Ok(Self { plan, clock, programs })
    }

    /// Starts to collect into a new file.
    ///
    /// # Errors
    /// When KVM is missing, or the file can't be written.
    pub fn begin(self, file: OutFile) -> Result<Collector> {
        let Self { plan, mut clock, mut programs } = self;
        let to = file.path().to_owned();
        let bytes = Arc::new(AtomicU64::new(0));
        let mut writer = Writer::new(file, Arc::clone(&bytes));
        writer.begin(&Begin {
            version: VERSION,
            words: plan.words.into(),
            trace_id: plan.trace_id,
            first_number: plan.number,
            numbers: programs::NUMBERS,
            clock: plan.clock.clone(),
        })?;
        let failed = CollectError::clock(&plan.clock);
        writer.pair(clock.pair().map_err(failed)?)?;
        writer.flush()?;
        programs.attach()?;
        let stop = Signal::new().map_err(CollectError::io("make an event for", &to))?;
        let mover = Mover { programs, clock, clock_name: plan.clock, writer, stop: stop.clone() };
        let thread = thread::Builder::new().name("hyperscope-coll".into()).spawn(move || {
            // The thread reads counts until the end, which kernels before 5.19 allow only with this capability. If this
            // fails, reading the counts reports an error.
            let _ = os::confine::keep_only(CapabilitySet::BPF);
            mover.run()
        });
        let thread = thread.map_err(CollectError::io("start a thread for", &to))?;
        Ok(Collector { stop, bytes, thread })
    }
}

/// Attached programs, and the thread that writes their records.
#[derive(Debug)]
pub struct Collector {
    stop: Signal,
    bytes: Arc<AtomicU64>,
    thread: JoinHandle<Result<Collected>>,
}

impl Collector {
    /// Bytes written so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether the thread has ended: early only after a failure.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Stops the thread and completes the file.
    ///
    /// # Errors
    /// When a write failed. The records written before are readable.
    pub fn end(self) -> Result<Collected> {
        self.stop.set();
        self.thread.join().unwrap_or(Err(CollectError::Panicked))
    }
}

/// State of the thread.
struct Mover {
    programs: Programs,
    clock: TraceClock,
    clock_name: String,
    writer: Writer,
    stop: Signal,
}

impl Mover {
    fn run(mut self) -> Result<Collected> {
        let mut interval = FIRST_INTERVAL;
        while !self.wait(interval)? {
            self.move_records()?;
            interval = INTERVAL;
        }
        // Hypercalls that are still being handled get no entry.
        self.programs.detach();
        self.programs.records(&mut |record| self.writer.hypercall(record))?;
        for record in self.programs.waiting()? {
            self.writer.hypercall(&record)?;
        }
        self.move_records()?;
        let (written, bytes) = (self.writer.hypercalls(), self.writer.written());
        Ok(Collected { counts: self.programs.counts()?, written, bytes })
    }

    /// Moves the available records, and notes clocks and counts.
    fn move_records(&mut self) -> Result<()> {
        self.programs.records(&mut |record| self.writer.hypercall(record))?;
        let pair = self.clock.pair().map_err(CollectError::clock(&self.clock_name))?;
        self.writer.pair(pair)?;
        self.writer.counts(self.programs.counts()?)?;
        self.writer.flush()
    }

    /// Waits until the ring must be emptied or the interval ends; true if the collector must stop.
    fn wait(&self, interval: Duration) -> Result<bool> {
        let timeout = Timespec::try_from(interval).ok();
        let ring = self.programs.ring();
        let stop = self.stop.fd();
        let mut fds = [PollFd::new(&ring, PollFlags::IN), PollFd::new(&stop, PollFlags::IN)];
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(CollectError::Wait(errno.into())),
        }
        let [_, stop] = fds;
        Ok(stop.revents().contains(PollFlags::IN))
    }
}
