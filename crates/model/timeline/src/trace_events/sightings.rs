//! Which threads ran on each CPU, and thread names: keeps only the events of a stream with new
//! information.
//!
//! Each event shows the thread on its CPU, but few events change it. They are found while the
//! records of vCPU threads are read ([`Aside`]).

use ftrace::eventfmt::EventFormat;
use ftrace::ringbuf::Missed;
use sources::{Block, Damage, Recording};

use super::EventRequest;
use super::batch::{TraceEventBatch, Walk};
use super::decode::{EventUse, Reader};
use crate::cycles::SWITCH_TAG;
use crate::extract::{Aside, Extractor};
use crate::rounds::{Batch, Decode, Input};
use crate::thread_batch::ThreadBatch;

/// Index of the only recording.
const ONLY: u16 = 0;

/// Reads the events of vCPU threads, and which threads ran on the CPUs.
#[derive(Debug)]
pub(crate) struct WithSightings {
    extractor: Extractor,
    reader: Reader,
    uses: Box<[EventUse; 1 << 16]>,
}

impl WithSightings {
    /// `wanted` events without fields or names are emitted only if their thread differs from that
    /// of the previous event.
    pub(crate) fn new(
        recording: &Recording,
        wanted: impl Fn(&EventFormat) -> Option<EventRequest>,
    ) -> Self {
        let reader = Reader::new(recording.formats(), recording.abi().order, wanted);
        let mut uses = Box::new([EventUse::Nothing; 1 << 16]);
        for (id, place) in (0..=u16::MAX).zip(uses.iter_mut()) {
            *place = reader.use_of(id);
        }
        Self { extractor: Extractor::new(recording, false), reader, uses }
    }

    /// Ids of the events seen.
    pub(crate) fn seen(&self) -> Vec<u16> {
        self.reader.seen()
    }
}

/// A block's data of both kinds.
#[derive(Debug, Default)]
pub(crate) struct SightingBatch {
    pub(crate) threads: ThreadBatch,
    pub(crate) events: TraceEventBatch,
}

impl Batch for SightingBatch {
    fn clear(&mut self) {
        self.threads.clear();
        self.events.clear();
    }

    fn last_stamp_ns(&self) -> Option<u64> {
        self.threads.last_stamp_ns().max(self.events.last_stamp_ns())
    }

    fn set_unreadable(&mut self, damage: Damage) {
        self.threads.set_unreadable(damage.clone());
        self.events.set_unreadable(damage);
    }
}

impl Decode for WithSightings {
    type Batch = SightingBatch;

    fn decode(&self, index: usize, input: Input<'_>, block: &Block<'_>, batch: &mut Self::Batch) {
        let SightingBatch { threads, events } = batch;
        let cpu = u16::try_from(input.stream.cpu()).unwrap_or(u16::MAX);
        let walk = Walk::new(ONLY, cpu, events);
        let mut sightings = Sightings { owner: self, thread: None, walk };
        self.extractor.decode_with(index, input, block, threads, &mut sightings);
        sightings.walk.batch.stamps = threads.stamps;
        sightings.walk.end();
    }
}

/// The sightings of a block.
struct Sightings<'b> {
    owner: &'b WithSightings,
    /// The thread on the CPU according to the last event on this page.
    thread: Option<u32>,
    walk: Walk<'b>,
}

impl Sightings<'_> {
    /// Processes an event that has fields or names, or whose thread differs from the previous
    /// event's.
    #[inline(never)]
    fn take<const BIG: bool>(&mut self, stamp_ns: u64, payload: &[u8]) {
        let place = (ONLY, self.walk.cpu);
        self.owner.reader.record_in::<BIG>(place, || stamp_ns, payload, self.walk.batch);
    }
}

impl Aside for Sightings<'_> {
    #[inline(always)]
    fn record<const BIG: bool>(&mut self, id: u16, stamp_ns: impl Fn() -> u64, payload: &[u8]) {
        let owner = self.owner;
        match owner.uses[usize::from(id)] {
            EventUse::Nothing => owner.reader.note_seen(usize::from(id)),
            EventUse::NamesAlone => {
                let batch = &mut *self.walk.batch;
                owner.reader.note_names::<BIG>(id, stamp_ns(), payload, batch);
            }
            EventUse::Thread => {
                let thread = Some(owner.reader.thread::<BIG>(payload));
                if thread != self.thread {
                    self.thread = thread;
                    self.take::<BIG>(stamp_ns(), payload);
                } else {
                    owner.reader.note_seen(usize::from(id));
                }
            }
            EventUse::Names => {
                let thread = Some(owner.reader.thread::<BIG>(payload));
                if thread != self.thread {
                    self.thread = thread;
                    self.take::<BIG>(stamp_ns(), payload);
                } else {
                    let batch = &mut *self.walk.batch;
                    owner.reader.note_names::<BIG>(id, stamp_ns(), payload, batch);
                }
            }
            EventUse::Fields => {
                self.take::<BIG>(stamp_ns(), payload);
                // After a switch another thread is on the CPU.
                let last = self.walk.batch.events.last();
                self.thread = last
                    .filter(|event| event.tag == SWITCH_TAG)
                    .and_then(|switch| switch.thread_value(2));
            }
        }
    }

    fn in_order(&mut self, missed: Missed, span_ns: (u64, u64)) {
        // The next page may follow a loss.
        self.thread = None;
        self.walk.in_order(missed != Missed::Nothing, span_ns);
    }

    fn out_of_order(&mut self, place_ns: u64) {
        self.thread = None;
        self.walk.out_of_order(place_ns);
    }

    fn damaged(&mut self) {
        self.thread = None;
        self.walk.damaged(None);
    }
}
