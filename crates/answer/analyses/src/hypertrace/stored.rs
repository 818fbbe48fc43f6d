//! Events from frames in shared memory: all CPUs of all guests, by time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use hypertrace::{Decoder, Event, Stored, StoredCpu};
use sources::Recording;

use super::{Carrier, GuestEvent, GuestEventSink, Route, StreamSummary, VcpuThread};

/// A file of frames.
#[derive(Debug)]
pub struct StoredFrames<'b> {
    pub stored: Stored<'b>,
    /// Recording of the guest's host, whose clock the times use; `None`: times are the guest's TSC, in
    /// nanoseconds.
    pub host: Option<u16>,
}

impl StoredFrames<'_> {
    /// Whether all its events can be converted to the host's clock.
    #[must_use]
    pub fn is_on_host_clock(&self, recordings: &[Recording]) -> bool {
        host_clock(self, recordings).is_some()
            && self.stored.cpus.values().all(|cpu| cpu.frames.is_empty() || cpu.relation.is_some())
    }
}

/// The host's recording, if its clock is the TSC.
fn host_clock<'r>(
    frames: &StoredFrames<'_>,
    recordings: &'r [Recording],
) -> Option<&'r sources::Recording> {
    recordings.get(usize::from(frames.host?)).filter(|host| host.is_of_tsc())
}

/// Emits events of all files by time.
pub(super) struct Ordered<'a> {
    cpus: Vec<Cpu<'a>>,
    /// Time of each CPU's next event.
    order: BinaryHeap<Reverse<(u64, usize)>>,
}

/// Frames of one CPU.
struct Cpu<'a> {
    from: VcpuThread,
    host: Option<&'a Recording>,
    stored: &'a StoredCpu<'a>,
    next: usize,
    /// Expected position of the next frame.
    position: Option<u64>,
    decoder: Decoder,
    waiting: VecDeque<Event>,
    frames: u64,
    events: u64,
}

impl<'a> Ordered<'a> {
    /// Files get recording numbers after those of `recordings`.
    pub(super) fn new(files: &'a [StoredFrames<'a>], recordings: &'a [Recording]) -> Self {
        let numbered = (recordings.len()..).zip(files);
        let cpus = numbered.flat_map(|(number, file)| {
            let host = host_clock(file, recordings);
            let recording = u16::try_from(number).unwrap_or(u16::MAX);
            file.stored.cpus.iter().map(move |(cpu, stored)| {
                let from = VcpuThread { recording, thread: (*cpu).into() };
                Cpu::new(from, host, stored)
            })
        });
        let mut ordered = Self { cpus: cpus.collect(), order: BinaryHeap::new() };
        (0..ordered.cpus.len()).for_each(|at| ordered.queue(at));
        ordered
    }

    /// Emits all events up to a time, or all.
    pub(super) fn up_to(&mut self, until_ns: Option<u64>, sink: &mut dyn GuestEventSink) {
        while let Some(&Reverse((stamp_ns, at))) = self.order.peek() {
            if until_ns.is_some_and(|until_ns| stamp_ns > until_ns) {
                return;
            }
            self.order.pop();
            if let Some(cpu) = self.cpus.get_mut(at)
                && let Some(event) = cpu.waiting.pop_front()
            {
                sink.event(cpu.from, &GuestEvent::Event(event), &Carrier::default());
            }
            self.queue(at);
        }
    }

    /// Summary of each CPU.
    pub(super) fn summaries(self) -> impl Iterator<Item = StreamSummary> {
        self.cpus.into_iter().map(|cpu| {
            let mut losses = cpu.decoder.losses();
            losses.frames_damaged = losses.frames_damaged.saturating_add(cpu.stored.damage);
            let Cpu { from, frames, events, .. } = cpu;
            StreamSummary { from, route: Route::Memory, frames, events, losses }
        })
    }

    fn queue(&mut self, at: usize) {
        if let Some(stamp_ns) = self.cpus.get_mut(at).and_then(Cpu::next_ns) {
            self.order.push(Reverse((stamp_ns, at)));
        }
    }
}

impl<'a> Cpu<'a> {
    fn new(from: VcpuThread, host: Option<&'a Recording>, stored: &'a StoredCpu<'a>) -> Self {
        Self {
            from,
            host,
            stored,
            next: 0,
            position: None,
            decoder: Decoder::default(),
            waiting: VecDeque::new(),
            frames: 0,
            events: 0,
        }
    }

    /// Time of the next event.
    fn next_ns(&mut self) -> Option<u64> {
        while self.waiting.is_empty() {
            let frame = *self.stored.frames.get(self.next)?;
            self.next += 1;
            let position = frame.position();
            let missed = self.position.map_or(0, |expected| position.saturating_sub(expected));
            if missed > 0 {
                self.decoder.missed(missed);
            }
            self.position = position.checked_add(1);
            let words = frame.words();
            if words.is_empty() {
                continue;
            }
            let mut events = Vec::new();
            let on_host = self.host.zip(self.stored.relation);
            let clock =
                on_host.map(|(host, relation)| move |tsc| host.time_ns(relation.host_tsc(tsc)));
            let clock = clock.as_ref().map(|clock| clock as &dyn Fn(u64) -> u64);
            self.decoder.stored(&words, clock, &mut events);
            self.frames += 1;
            self.events += events.len() as u64;
            self.waiting.extend(events);
        }
        Some(self.waiting.front()?.stamp_ns)
    }
}
