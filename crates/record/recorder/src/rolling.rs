//! The segments of all CPUs: starts new ones, and removes old ones.

mod generation;
mod growing;
mod roller;

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use os::folder::Folder;
use os::waits::{Deadline, Signal};
use tracefs::{Clock, TraceSession, UnixPair};

use self::growing::Growing;
use self::roller::{Orders, Roller, Rolls};
use crate::error::{RecordError, Result};
use crate::flight_plan::FlightPlan;
use crate::guest::PageShape;
use crate::nanoseconds::unix_ns;

pub(crate) use self::generation::{Edge, Generation, Segment};

/// Generations per kept time: the recorder keeps at most this fraction of the time more.
const PARTS: u32 = 12;
/// Generations per max size: removing the oldest one frees this fraction.
const SIZE_PARTS: u64 = 16;
/// Max time to wait for rollers to end their segments. With a slower disk they end later.
const ENDS: Duration = Duration::from_secs(5);

/// All segments, and the threads that write them.
#[derive(Debug)]
pub(crate) struct Rolling {
    plan: FlightPlan,
    folder: Folder,
    clock: Clock,
    orders: Orders,
    stop: Signal,
    rollers: Vec<Roller>,
    ended: Receiver<Segment>,
    growing: Growing,
    /// Ended generations, oldest first.
    generations: VecDeque<Generation>,
    /// Begin of the current generation.
    current_begin: Edge,
    /// When a generation was last removed early because of the max size.
    shortened: Option<Instant>,
}

impl Edge {
    pub(crate) fn now(clock: &Clock) -> Self {
        Self {
            at: Instant::now(),
            unix_ns: unix_ns(),
            clocks: UnixPair::now(clock),
            own_cpu_ns: sys::process_cpu_ns(),
        }
    }
}

impl Rolling {
    /// Starts keeping the pages of a trace session in a folder.
    pub(crate) fn begin(
        plan: FlightPlan,
        session: &TraceSession,
        folder: Folder,
        stop: &Signal,
    ) -> Result<Self> {
        let failed = || RecordError::io("make an event for", folder.path());
        let orders = Orders::new().map_err(failed())?;
        let (send, ended) = mpsc::channel();
        let growing = Growing::new(plan.most_bytes / SIZE_PARTS, plan.asks.clone());
        let shape = PageShape {
            bytes: session.texts().page_size() as usize,
            long_bytes: size_of::<usize>(),
            big_endian: cfg!(target_endian = "big"),
        };
        let buffer_bytes = usize::try_from(session.buffer_kib() << 10).unwrap_or(usize::MAX);
        let start = |&cpu: &u32| {
            let (from, stats) = (session.raw_pages(cpu)?, session.stats_file(cpu)?);
            let (to, growing) = (folder.clone(), growing.clone());
            let rolls = Rolls { cpu, from, stats, to, shape, growing, buffer_bytes };
            Roller::start(rolls, orders.clone(), stop.clone(), send.clone())
        };
        let rollers = session.cpus().iter().map(start).collect::<Result<_>>()?;
        let clock = session.clock().clone();
        let current_begin = Edge::now(&clock);
        Ok(Self {
            plan,
            folder: folder.clone(),
            clock,
            orders,
            stop: stop.clone(),
            rollers,
            ended,
            growing,
            generations: VecDeque::new(),
            current_begin,
            shortened: None,
        })
    }

    /// Number of recorded CPUs.
    pub(crate) fn cpus(&self) -> usize {
        self.rollers.len()
    }

    /// Current size of all files.
    pub(crate) fn bytes(&self) -> u64 {
        let ended: u64 = self.generations.iter().map(Generation::bytes).sum();
        ended + self.growing.bytes()
    }

    /// Whether recording of a CPU has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.rollers.iter().any(Roller::is_finished)
    }

    /// What to keep.
    pub(crate) fn plan(&self) -> &FlightPlan {
        &self.plan
    }

    /// The folder with the segments.
    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Ended generations, oldest first.
    pub(crate) fn generations(&self) -> impl Iterator<Item = &Generation> {
        self.generations.iter()
    }

    /// Begin of the oldest kept generation.
    pub(crate) fn oldest(&self) -> Instant {
        self.generations.front().map_or(self.current_begin.at, |first| first.begin.at)
    }

    /// Begin of the current generation: the end of the previous one.
    pub(crate) fn current_begin(&self) -> Edge {
        self.current_begin
    }

    /// Whether less time is kept than requested.
    pub(crate) fn is_shorter(&self) -> bool {
        let is_recent = |at: &Instant| at.elapsed() < self.plan.window;
        let first = self.generations.front().map_or(self.current_begin.at, |first| first.begin.at);
        self.shortened.as_ref().is_some_and(is_recent) || first.elapsed() < self.plan.window
    }

    /// Max time of a generation.
    pub(crate) fn often(&self) -> Duration {
        self.plan.window / PARTS
    }

    /// Fails if the folder of the segments was removed.
    pub(crate) fn refuse_removed(&self) -> Result<()> {
        match self.folder.place() {
            Some(_) => Ok(()),
            None => Err(RecordError::FolderRemoved { path: self.folder.path().to_owned() }),
        }
    }

    /// Whether the current generation has reached its max time or size.
    pub(crate) fn is_due(&self) -> bool {
        self.current_begin.at.elapsed() >= self.often() || self.growing.is_full()
    }

    /// Starts a new generation, and removes old ones.
    ///
    /// # Errors
    /// When the process has no free descriptors.
    pub(crate) fn roll(&mut self) -> Result<()> {
        // Read before the generation ends: all later events have later times.
        let next = Edge::now(&self.clock);
        let ordered = self.orders.roll();
        let number = ordered.map_err(RecordError::io("make an event for", self.folder.path()))?;
        let begin = std::mem::replace(&mut self.current_begin, next);
        self.generations.push_back(Generation { number, begin, segments: Vec::new() });
        let mut forgotten = self.take_ended(number);
        forgotten.extend(self.forget());
        for segment in forgotten {
            // A file that can't be removed now is removed with its folder.
            let _ = self.folder.remove(&segment.file());
        }
        Ok(())
    }

    /// Receives segments until all of a generation have arrived or the disk is too slow; returns those of removed
    /// generations.
    fn take_ended(&mut self, number: u64) -> Vec<Segment> {
        let mut forgotten = Vec::new();
        let until = Deadline::after(ENDS);
        let mut missing = self.rollers.iter().filter(|roller| !roller.is_finished()).count();
        while missing > 0 {
            match self.ended.recv_timeout(until.remaining()) {
                Ok(segment) => {
                    // A late segment belongs to an earlier generation, and the one of this generation follows it.
                    missing -= usize::from(segment.number == number);
                    let is_its_generation =
                        |generation: &&mut Generation| generation.number == segment.number;
                    match self.generations.iter_mut().find(is_its_generation) {
                        Some(generation) => generation.segments.push(segment),
                        None if segment.bytes > 0 => forgotten.push(segment),
                        None => {}
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        forgotten
    }

    /// Removes and returns segments that need not be kept any more.
    fn forget(&mut self) -> Vec<Segment> {
        let mut forgotten = Vec::new();
        let mut bytes: u64 = self.generations.iter().map(Generation::bytes).sum();
        while let Some(next) = self.generations.get(1).map(|next| next.begin.at) {
            let oldest_bytes = self.generations.front().map_or(0, Generation::bytes);
            let is_old = next.elapsed() >= self.plan.window;
            if !is_old && !self.is_too_much(bytes, oldest_bytes) {
                break;
            }
            if !is_old {
                self.shortened = Some(Instant::now());
            }
            let Some(oldest) = self.generations.pop_front() else { break };
            bytes -= oldest_bytes;
            forgotten.extend(oldest.segments.into_iter().filter(|segment| segment.bytes > 0));
        }
        forgotten
    }

    /// Whether the oldest generation exceeds the max size. A generation that received too much, faster than the next
    /// could begin, stays until the later ones have enough.
    fn is_too_much(&self, bytes: u64, oldest_bytes: u64) -> bool {
        let max = self.plan.most_bytes;
        let others = bytes - oldest_bytes;
        bytes > max - max / SIZE_PARTS && (others >= max / 2 || bytes > max.saturating_mul(2))
    }

    /// CPUs without a segment in the newest generation: their disk is too slow.
    pub(crate) fn late_cpus(&self) -> Vec<u32> {
        let newest = self.generations.back();
        let has = |cpu: u32| {
            newest.is_some_and(|generation| {
                generation.segments.iter().any(|segment| segment.cpu == cpu)
            })
        };
        self.rollers.iter().map(|roller| roller.cpu).filter(|&cpu| !has(cpu)).collect()
    }

    /// Stops; returns errors.
    pub(crate) fn end(&mut self) -> Vec<io::Error> {
        self.stop.set();
        // Wakes the rollers.
        let _ = self.orders.roll();
        self.rollers.drain(..).filter_map(|roller| roller.join().err()).collect()
    }
}

impl Drop for Rolling {
    fn drop(&mut self) {
        // Rollers hold files of the instance, which the kernel can't remove before.
        drop(self.end());
    }
}
