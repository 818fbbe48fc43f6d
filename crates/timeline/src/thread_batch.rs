//! What one block of pages becomes: events of threads, and what was lost between its pages.

use ringbuf::Missed;
use sources::Damage;

use crate::losses::BatchLosses;
use crate::rounds::Batch;
use crate::thread_event::{Kind, KindSet, ThreadEvent};

/// The events of one block that concern threads.
#[derive(Debug, Default)]
pub(crate) struct ThreadBatch {
    /// In time order.
    pub(crate) events: Vec<ThreadEvent>,
    /// Kinds of events there are.
    pub(crate) seen: KindSet,
    /// Threads that entered or left a guest.
    pub(crate) vcpu_threads: Vec<u32>,
    /// Stamp of the first page.
    pub(crate) first_ns: Option<u64>,
    last_ns: Option<u64>,
    /// Something before the first page was lost.
    pub(crate) head_gap: bool,
    /// Something after the last readable page could not be read.
    pub(crate) tail_gap: bool,
    pub(crate) losses: BatchLosses,
}

impl ThreadBatch {
    /// The block goes up to this moment at least.
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

    #[cold]
    fn note_vcpu(&mut self, thread: u32) {
        // The last one stands at the end, where it is found at once.
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

/// Keeps account of losses from page to page of one block.
#[derive(Debug)]
pub(crate) struct PageWalk<'b> {
    stream: u16,
    cpu: u32,
    /// Something was lost since the last readable event.
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

    /// A page, or the rest of one, can't be read.
    pub(crate) fn damaged(&mut self, offset: u64, what: String) {
        self.batch.losses.damage.push(Damage::on_cpu(self.cpu, offset, what));
        self.gap = true;
    }

    /// A readable page begins at `stamp_ns`: whatever was lost before it is placed.
    pub(crate) fn begin(&mut self, stamp_ns: u64, missed: Missed) {
        self.gap |= self.batch.losses.missed(missed);
        if self.batch.last_ns.is_some_and(|last_ns| stamp_ns < last_ns) {
            // A page can't begin before the one before it ended, unless its stamp is damaged.
            self.gap = true;
        }
        if std::mem::take(&mut self.gap) {
            match self.batch.last_ns {
                Some(last_ns) => {
                    let event = ThreadEvent::lost(self.stream, last_ns, stamp_ns);
                    self.batch.events.push(event);
                }
                None => self.batch.head_gap = true,
            }
        }
        self.batch.first_ns.get_or_insert(stamp_ns);
        self.batch.reached(stamp_ns);
    }

    /// The block ends; a loss at its end concerns the next block of the stream.
    pub(crate) fn end(self) {
        self.batch.tail_gap = self.gap;
    }
}

impl ThreadEvent {
    /// The marker of a loss on `stream` between two moments.
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
