//! The content of a block of pages: events of threads, and losses between the pages.

use ftrace::ringbuf::{Missed, StepBack};
use sources::Damage;

use crate::losses::BatchLosses;
use crate::rounds::Batch;
use crate::stamps::{self, BlockStamps};
use crate::thread_event::{Kind, KindSet, ThreadEvent};

/// Events `from..to` of batch `batch` in lane `lane`, all of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) lane: usize,
    pub(crate) batch: usize,
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
}

/// The thread events of a block.
#[derive(Debug, Default)]
pub(crate) struct ThreadBatch {
    /// In time order.
    pub(crate) events: Vec<ThreadEvent>,
    /// Event kinds in the block.
    pub(crate) seen: KindSet,
    /// Threads that entered or exited a guest.
    pub(crate) vcpu_threads: Vec<u32>,
    /// Stamp of the first page.
    pub(crate) first_ns: Option<u64>,
    last_ns: Option<u64>,
    /// Events before the first page were lost.
    pub(crate) head_gap: bool,
    /// Data after the last readable page could not be read.
    pub(crate) tail_gap: bool,
    pub(crate) stamps: BlockStamps,
    pub(crate) losses: BatchLosses,
}

impl ThreadBatch {
    /// The block extends at least up to this time.
    pub(crate) fn reached(&mut self, stamp_ns: u64) {
        self.last_ns = self.last_ns.max(Some(stamp_ns));
    }

    /// Adds an event of a thread.
    #[inline(always)]
    pub(crate) fn push(&mut self, event: ThreadEvent) {
        self.seen.insert(event.kind);
        if matches!(event.kind, Kind::Exit | Kind::Entry)
            && self.vcpu_threads.last() != Some(&event.thread)
        {
            self.note_vcpu(event.thread);
        }
        self.events.push(event);
    }

    /// The stream has already reached a time after the start of this block: earlier events get that
    /// time.
    #[cold]
    pub(crate) fn begin_at(&mut self, stream: u16, reached_ns: u64) {
        let late = self.events.iter().take_while(|event| event.stamp_ns < reached_ns).count();
        for event in &mut self.events {
            event.stamp_ns = event.stamp_ns.max(reached_ns);
            if event.kind == Kind::Lost {
                event.value = event.value.max(reached_ns);
            }
        }
        match self.events.get(late).map(|event| event.stamp_ns) {
            Some(next_ns) => {
                self.events.insert(late, ThreadEvent::lost(stream, reached_ns, next_ns));
            }
            None if self.last_ns.is_none_or(|last_ns| last_ns < reached_ns) => self.tail_gap = true,
            None => {}
        }
        self.events.insert(0, ThreadEvent::lost(stream, reached_ns, reached_ns.saturating_add(1)));
        self.first_ns = self.first_ns.max(Some(reached_ns));
    }

    #[cold]
    fn note_vcpu(&mut self, thread: u32) {
        // The most recent thread goes to the end, where the search begins.
        self.vcpu_threads.retain(|&known| known != thread);
        self.vcpu_threads.push(thread);
    }
}

impl Batch for ThreadBatch {
    fn clear(&mut self) {
        let mut events = std::mem::take(&mut self.events);
        events.clear();
        *self = Self { events, ..Self::default() };
    }

    fn last_stamp_ns(&self) -> Option<u64> {
        self.last_ns
    }

    fn set_unreadable(&mut self, damage: Damage) {
        self.losses.damage.push(damage);
        self.tail_gap = true;
    }
}

/// Tracks losses from page to page of a block.
#[derive(Debug)]
pub(crate) struct PageWalk<'b> {
    stream: u16,
    cpu: u32,
    /// Events were lost since the last readable event.
    gap: bool,
    batch: &'b mut ThreadBatch,
}

impl<'b> PageWalk<'b> {
    pub(crate) fn new(stream: u16, cpu: u32, batch: &'b mut ThreadBatch) -> Self {
        Self { stream, cpu, gap: false, batch }
    }

    pub(crate) fn batch(&mut self) -> &mut ThreadBatch {
        self.batch
    }

    /// A page, or the rest of a page, cannot be read.
    pub(crate) fn damaged(&mut self, offset: u64, what: String) {
        self.batch.losses.damage.push(Damage::on_cpu(self.cpu, offset, what));
        self.gap = true;
    }

    /// Called after a page whose times are in order: places all losses before it. Its events start
    /// at index `from`.
    pub(crate) fn in_order(&mut self, from: usize, missed: Missed, span_ns: (u64, u64)) {
        let (begin_ns, end_ns) = span_ns;
        self.gap |= self.batch.losses.missed(missed);
        if std::mem::take(&mut self.gap) {
            match self.batch.last_ns {
                Some(last_ns) => {
                    let event = ThreadEvent::lost(self.stream, last_ns, begin_ns);
                    self.batch.events.insert(from, event);
                }
                None => self.batch.head_gap = true,
            }
        }
        self.batch.first_ns.get_or_insert(begin_ns);
        self.batch.reached(begin_ns.max(end_ns));
    }

    /// Called after a page with invalid times. Its events from index `from` on happened at an
    /// unknown time: they are placed where the ordered pages have ended (`place_ns` if there are
    /// none), inside a loss that lasts until the next ordered page.
    #[cold]
    pub(crate) fn out_of_order(&mut self, from: usize, missed: Missed, place_ns: u64) {
        self.batch.losses.missed(missed);
        let place_ns = self.batch.last_ns.unwrap_or(place_ns);
        for event in self.batch.events.iter_mut().skip(from) {
            event.stamp_ns = place_ns;
        }
        let loss = ThreadEvent::lost(self.stream, place_ns, place_ns.saturating_add(1));
        self.batch.events.insert(from, loss);
        self.batch.head_gap |= self.batch.last_ns.is_none();
        self.batch.first_ns.get_or_insert(place_ns);
        self.batch.reached(place_ns);
        self.gap = true;
    }

    /// The clock ran back before or after a page.
    pub(crate) fn stepped(&mut self, offset: u64, step: Option<StepBack>) {
        self.batch.losses.damage.extend(step.map(|step| stamps::step(self.cpu, offset, step)));
    }

    /// Ends the block; a loss at its end concerns the next block of the stream.
    pub(crate) fn end(self) {
        self.batch.tail_gap = self.gap;
    }
}

impl ThreadEvent {
    /// The event for a loss on `stream` between two times.
    pub(crate) fn lost(stream: u16, from_ns: u64, to_ns: u64) -> Self {
        Self {
            stamp_ns: from_ns,
            value: to_ns,
            thread: u32::MAX,
            stream,
            kind: Kind::Lost,
            flag: 0,
        }
    }
}
