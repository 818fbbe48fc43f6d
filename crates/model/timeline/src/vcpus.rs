//! The vCPU threads of a recording: identified by their events, and separated if thread ids are
//! reused.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::thread_event::{Kind, ThreadEvent};
use crate::vcpu::{ExitSink, VcpuThread};

/// A vCPU thread according to its own events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VcpuInfo {
    /// Thread id (the kernel's `pid`).
    pub thread: u32,
    /// The id in its `kvm_entry` events, if they have one.
    pub vcpu_id: Option<u32>,
    /// Time of its first entry or exit: distinguishes threads that reused an id.
    pub first_ns: u64,
}

/// Losses that vCPUs process at their next event: a recording can have as many vCPUs and losses as
/// lines, so eager delivery would be quadratic.
#[derive(Debug, Default)]
struct PendingLosses {
    /// Total number of losses.
    count: u64,
    /// The newest loss of each stream, by its number; it lasts at least as long as its
    /// predecessors.
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

    /// Passes a vCPU the losses that it has not processed.
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

/// All vCPU threads, including ended ones.
#[derive(Debug, Default)]
pub(crate) struct Vcpus {
    infos: Vec<VcpuInfo>,
    live: FxHashMap<u32, VcpuThread>,
    /// vCPUs by thread and id: a VMM can run several vCPUs in one thread, one after the other.
    by_id: FxHashMap<(u32, u64), usize>,
    /// Losses that have not ended: they also concern vCPUs that first appear during the loss.
    open_gaps: Vec<ThreadEvent>,
    pending_losses: PendingLosses,
    /// Sum over ended threads; see [`VcpuThread::switches_unseen`].
    switches_unseen: u64,
}

impl Vcpus {
    /// The vCPU that a thread currently runs.
    pub(crate) fn of_thread(&mut self, thread: u32) -> Option<&VcpuThread> {
        self.of_thread_mut(thread).map(|vcpu| &*vcpu)
    }

    /// [`Vcpus::of_thread`] before the thread's next event, unless the vCPU [ends
    /// before](VcpuThread::ends_before) it.
    #[inline]
    pub(crate) fn of_thread_mut(&mut self, thread: u32) -> Option<&mut VcpuThread> {
        let vcpu = self.live.get_mut(&thread)?;
        self.pending_losses.deliver(vcpu);
        Some(vcpu)
    }

    /// Current vCPU threads, in order of discovery.
    pub(crate) fn threads(&self) -> Vec<u32> {
        let mut threads: Vec<(usize, u32)> =
            self.live.iter().map(|(thread, vcpu)| (vcpu.index, *thread)).collect();
        threads.sort_unstable();
        threads.into_iter().map(|(_, thread)| thread).collect()
    }

    /// Threads of all vCPUs found after the first `known`, including ended ones.
    pub(crate) fn found_after(&self, known: usize) -> impl Iterator<Item = u32> {
        self.infos.iter().skip(known).map(|info| info.thread)
    }

    /// Informs all vCPUs of a loss, including those that are still unknown.
    pub(crate) fn lost(&mut self, gap: &ThreadEvent) {
        self.open_gaps.push(*gap);
        self.pending_losses.add(gap);
    }

    /// Remembers losses that still unknown threads may need.
    pub(crate) fn note_gaps(&mut self, gaps: &[ThreadEvent]) {
        self.open_gaps.extend_from_slice(gaps);
    }

    /// Losses that have not ended.
    pub(crate) fn open_gaps(&self) -> &[ThreadEvent] {
        &self.open_gaps
    }

    /// No event before this time will follow.
    pub(crate) fn forget_gaps_before(&mut self, horizon_ns: u64) {
        self.open_gaps.retain(|gap| gap.value > horizon_ns);
    }

    /// Processes events of one thread, in time order.
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

    /// Makes the thread a vCPU at its first entry or exit in `events`.
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

    /// The index of the vCPU that the thread runs from this event on: an existing one if the thread
    /// has run this vCPU id before.
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

    /// Passes events to a vCPU until it ends; returns the remaining events, or none if the thread
    /// is not a vCPU.
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

    /// Ends all threads, in order of discovery.
    pub(crate) fn finish(self, sink: &mut impl ExitSink) -> Vec<VcpuInfo> {
        self.finish_and_count(sink).0
    }

    /// As [`Vcpus::finish`], with the number of switches that were not recorded although no event
    /// was lost.
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
