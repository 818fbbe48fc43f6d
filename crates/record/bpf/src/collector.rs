//! Collects guests' hypercalls with all their registers by BPF programs in a KVM host's kernel, and
//! writes them to a file next to the host's recording (`docs/formats/collected.md`).
//!
//! The programs are `bpf/collect.bpf.c`. Nothing of them stays when the [`Collector`], or its
//! process, is gone: descriptors hold them in the kernel. They write one record from exit to entry
//! into a ring; a thread moves those to the file, and notes every second how the clock that BPF has
//! goes with the clock of the recording.

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

/// How often clocks are compared, and what is in the ring goes to the file.
const INTERVAL: Duration = Duration::from_secs(1);
/// The second comparison comes earlier: one alone doesn't show how fast the clocks run.
const FIRST_INTERVAL: Duration = Duration::from_millis(50);

/// What is collected.
#[derive(Clone, Debug)]
pub struct CollectorPlan {
    /// The recording's trace clock.
    pub clock: String,
    /// The recording's identity.
    pub trace_id: u64,
    /// The number of hypercalls that carry frames; marks have the next one.
    pub number: u64,
    /// Registers of each hypercall: 4 to 13.
    pub words: u8,
}

/// How it went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// What the programs counted.
    pub counts: Counts,
    /// Hypercalls in the file.
    pub written: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

/// Programs that are in the kernel and do not run yet: loading them takes longest, and is what a
/// kernel or a user may not be up to.
#[derive(Debug)]
pub struct Loaded {
    plan: CollectorPlan,
    clock: TraceClock,
    programs: Programs,
}

impl Loaded {
    /// Loads what is needed.
    ///
    /// # Errors
    /// When this kernel or this user has no way to it.
    pub fn load(plan: CollectorPlan) -> Result<Self> {
        let clock = TraceClock::open(&plan.clock).map_err(CollectError::clock(&plan.clock))?;
        let programs = Programs::load(plan.number, plan.words)?;
        Ok(Self { plan, clock, programs })
    }

    /// Begins to collect, into a new file.
    ///
    /// # Errors
    /// When KVM is not there, or the file can't be written.
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
            // What the kernel counted is asked for until the end, which kernels before 5.19 let nobody
            // else do. Without it the counts can't be had, and that is said then.
            let _ = os::confine::keep_only(CapabilitySet::BPF);
            mover.run()
        });
        let thread = thread.map_err(CollectError::io("start a thread for", &to))?;
        Ok(Collector { stop, bytes, thread })
    }
}

/// Programs that collect, and the thread that writes what they do.
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

    /// Whether it has ended, as it does early only when something failed.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Ends it; the file is complete then.
    ///
    /// # Errors
    /// When something could not be written. What was is readable.
    pub fn end(self) -> Result<Collected> {
        self.stop.set();
        self.thread.join().unwrap_or(Err(CollectError::Panicked))
    }
}

/// What the thread does.
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
        // What is still outside a guest has no entry any more that would be seen.
        self.programs.detach();
        self.programs.records(&mut |record| self.writer.hypercall(record))?;
        for record in self.programs.waiting()? {
            self.writer.hypercall(&record)?;
        }
        self.move_records()?;
        let (written, bytes) = (self.writer.hypercalls(), self.writer.written());
        Ok(Collected { counts: self.programs.counts()?, written, bytes })
    }

    /// Moves what is there, and notes where clocks and counts are.
    fn move_records(&mut self) -> Result<()> {
        self.programs.records(&mut |record| self.writer.hypercall(record))?;
        let pair = self.clock.pair().map_err(CollectError::clock(&self.clock_name))?;
        self.writer.pair(pair)?;
        self.writer.counts(self.programs.counts()?)?;
        self.writer.flush()
    }

    /// Waits until the ring is so full that it has to be emptied, or the turn is over; whether all is.
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
