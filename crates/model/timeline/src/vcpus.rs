//! The vCPU threads of a recording: found by what they do, told apart when thread ids are reused.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::thread_event::{Kind, ThreadEvent};
use crate::vcpu::{ExitSink, VcpuThread};

/// A vCPU thread as far as its own events show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VcpuInfo {
    /// Thread id (the kernel's `pid`).
    pub thread: u32,
    /// The id its `kvm_entry` events carry, where they carry one.
    pub vcpu_id: Option<u32>,
    /// Time of its first entry or exit: tells threads apart that had the same id.
    pub first_ns: u64,
}

/// Losses that vCPUs learn of at their next event: a recording may have as many vCPUs, and as many losses, as lines.
#[derive(Debug, Default)]
struct PendingLosses {
    /// How many there were.
    count: u64,
    /// The newest loss of each stream, by its number; it lasts as long as any before it.
    newest: BTreeMap<u64, ThreadEvent>,
    /// By stream, the number of its newest loss.
    numbers: FxHashMap<u16, u64>,
}

impl PendingLosses {
    fn add(&mut self, gap: &ThreadEvent) {
        self.count += 1;
        let before = self.numbers.insert(gap.stream, self.count);
        let before = before.and_then(|number| self.newest.remove(&number));
        let to_ns = before.map_or(gap.value, |before| before.value.max(gap.value));
        self.newest.insert(self.count, ThreadEvent { value: to_ns, ..*gap });
    }

    /// Gives a vCPU those that it has not seen.
    #[inline]
    fn deliver(&self, vcpu: &mut VcpuThread) {
        if vcpu.losses_seen != self.count {
            self.deliver_new(vcpu);
        }
    }

    #[cold]
    fn deliver_new(&self, vcpu: &mut VcpuThread) {
        let new = self.newest.range(vcpu.losses_seen.saturating_add(1)..);
        new.for_each(|(_, gap)| vcpu.lost(gap));
        vcpu.losses_seen = self.count;
    }
}

/// All vCPU threads, those that ended included.
#[derive(Debug, Default)]
pub(crate) struct Vcpus {
    infos: Vec<VcpuInfo>,
    live: FxHashMap<u32, VcpuThread>,
    /// vCPUs by thread and id: a VMM may run several in one thread, one after the other.
    by_id: FxHashMap<(u32, u64), usize>,
    /// Losses that have not ended: they concern vCPUs first seen within them, too.
    open_gaps: Vec<ThreadEvent>,
    pending_losses: PendingLosses,
    /// Of threads that have ended; see [`VcpuThread::switches_unseen`].
    switches_unseen: u64,
}

impl Vcpus {
    /// The vCPU that a thread is at the moment.
    pub(crate) fn of_thread(&mut self, thread: u32) -> Option<&VcpuThread> {
        self.of_thread_mut(thread).map(|vcpu| &*vcpu)
    }

    /// [`Vcpus::of_thread`], to be given the thread's next event, unless it [ends before](VcpuThread::ends_before).
    #[inline]
    pub(crate) fn of_thread_mut(&mut self, thread: u32) -> Option<&mut VcpuThread> {
        let vcpu = self.live.get_mut(&thread)?;
        self.pending_losses.deliver(vcpu);
        Some(vcpu)
    }

    /// Threads that are vCPUs at the moment, in the order in which they were found.
    pub(crate) fn threads(&self) -> Vec<u32> {
        let mut threads: Vec<(usize, u32)> =
            self.live.iter().map(|(thread, vcpu)| (vcpu.index, *thread)).collect();
        threads.sort_unstable();
        threads.into_iter().map(|(_, thread)| thread).collect()
    }

    /// Threads of all vCPUs found after the first `known`, those that ended included.
    pub(crate) fn found_after(&self, known: usize) -> impl Iterator<Item = u32> {
        self.infos.iter().skip(known).map(|info| info.thread)
    }

    /// Informs all vCPUs of a loss, those not yet known too.
    pub(crate) fn lost(&mut self, gap: &ThreadEvent) {
        self.open_gaps.push(*gap);
        self.pending_losses.add(gap);
    }

    /// Notes losses of which threads not yet known may have to hear.
    pub(crate) fn note_gaps(&mut self, gaps: &[ThreadEvent]) {
        self.open_gaps.extend_from_slice(gaps);
    }

    /// Losses that have not ended.
    pub(crate) fn open_gaps(&self) -> &[ThreadEvent] {
        &self.open_gaps
    }

    /// No event before this moment is to come.
    pub(crate) fn forget_gaps_before(&mut self, horizon_ns: u64) {
        self.open_gaps.retain(|gap| gap.value > horizon_ns);
    }

    /// Takes events of one thread, in time order.
    pub(crate) fn feed(&mut self, thread: u32, events: &[ThreadEvent], sink: &mut impl ExitSink) {
        let mut rest = events;
        while !rest.is_empty() {
            match self.feed_live(thread, rest, sink) {
                Some(remaining) => rest = remaining,
                None if self.begin(thread, &mut rest) => {}
                None => return,
            }
        }
    }

    /// Makes the thread a vCPU at its first entry or exit among `events`.
    fn begin(&mut self, thread: u32, events: &mut &[ThreadEvent]) -> bool {
        let is_vcpu = |event: &ThreadEvent| matches!(event.kind, Kind::Exit | Kind::Entry);
        let Some(at) = events.iter().position(is_vcpu) else { return false };
        *events = events.get(at..).unwrap_or(&[]);
        let first_ns = events.first().map_or(0, |event| event.stamp_ns);
        let mut vcpu = VcpuThread::new(self.index_of(thread, events.first()));
        vcpu.losses_seen = self.pending_losses.count;
        for gap in &self.open_gaps {
            if gap.stamp_ns <= first_ns && gap.value > first_ns {
                vcpu.lost(gap);
            }
        }
        self.live.insert(thread, vcpu);
        true
    }

    /// The index of the vCPU that the thread runs from this event on: a known one, if the event
    /// has an id the thread has run before.
    fn index_of(&mut self, thread: u32, first: Option<&ThreadEvent>) -> usize {
        let next = self.infos.len();
        let id = first.filter(|event| event.kind == Kind::Entry && event.value != 0);
        let index = match id {
            Some(event) => *self.by_id.entry((thread, event.value)).or_insert(next),
            None => next,
        };
        if index == next {
            let first_ns = first.map_or(0, |event| event.stamp_ns);
            self.infos.push(VcpuInfo { thread, vcpu_id: None, first_ns });
        }
        index
    }

    /// Feeds a vCPU until it ends; returns what is left then, and nothing of a thread that is none.
    fn feed_live<'e>(
        &mut self,
        thread: u32,
        events: &'e [ThreadEvent],
        sink: &mut impl ExitSink,
    ) -> Option<&'e [ThreadEvent]> {
        let vcpu = self.live.get_mut(&thread)?;
        self.pending_losses.deliver(vcpu);
        for (at, event) in events.iter().enumerate() {
            if vcpu.ends_before(event) {
                vcpu.finish(sink);
                self.end(thread);
                let gone = event.kind == Kind::ThreadGone;
                if gone {
                    self.by_id.retain(|(vcpu_thread, _), _| *vcpu_thread != thread);
                }
                return events.get(at + usize::from(gone)..);
            }
            vcpu.feed(event, sink);
        }
        Some(&[])
    }

    fn end(&mut self, thread: u32) {
        if let Some(vcpu) = self.live.remove(&thread)
            && let Some(info) = self.infos.get_mut(vcpu.index)
        {
            info.vcpu_id = vcpu.vcpu_id;
            self.switches_unseen += vcpu.switches_unseen;
            if let Some(id) = vcpu.vcpu_id {
                self.by_id.entry((thread, u64::from(id) + 1)).or_insert(vcpu.index);
            }
        }
    }

    /// Ends all threads, in the order in which they were found.
    pub(crate) fn finish(self, sink: &mut impl ExitSink) -> Vec<VcpuInfo> {
        self.finish_and_count(sink).0
    }

    /// The same, and how many of their switches are not in the recording though no event was lost.
    pub(crate) fn finish_and_count(mut self, sink: &mut impl ExitSink) -> (Vec<VcpuInfo>, u64) {
        for thread in self.threads() {
            if let Some(vcpu) = self.of_thread_mut(thread) {
                vcpu.finish(sink);
            }
            self.end(thread);
        }
        (self.infos, self.switches_unseen)
    }
}
