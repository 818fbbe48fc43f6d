//! The result of decoding a block: the wanted events, and the losses between its pages.

use sources::Damage;

use super::names::BatchNames;
use super::{Gap, TraceEvent};
use crate::losses::BatchLosses;
use crate::rounds::Batch;
use crate::stamps::BlockStamps;

/// The decoded content of a block.
#[derive(Debug, Default)]
pub(crate) struct TraceEventBatch {
    /// In time order, unless the page is damaged.
    pub(crate) events: Vec<TraceEvent>,
    /// Gaps, each with the index of the event that follows it, in that order.
    pub(super) gaps: Vec<(usize, Gap)>,
    pub(super) names: BatchNames,
    pub(super) first_ns: Option<u64>,
    pub(super) last_ns: Option<u64>,
    /// Data after the last readable page could not be read.
    pub(super) tail_gap: bool,
    pub(super) stamps: BlockStamps,
    pub(super) losses: BatchLosses,
}

impl Batch for TraceEventBatch {
    fn clear(&mut self) {
        let (mut events, mut names) =
            (std::mem::take(&mut self.events), std::mem::take(&mut self.names));
        events.clear();
        names.clear();
        *self = Self { events, names, ..Self::default() };
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
pub(super) struct Walk<'b> {
    pub(super) recording: u16,
    pub(super) cpu: u16,
    /// Events were lost since the last ordered page.
    gap: bool,
    /// Index of the first event of the current page.
    from: usize,
    pub(super) batch: &'b mut TraceEventBatch,
}

impl<'b> Walk<'b> {
    pub(super) fn new(recording: u16, cpu: u16, batch: &'b mut TraceEventBatch) -> Self {
        Self { recording, cpu, gap: false, from: 0, batch }
    }

    /// A page, or the rest of a page, cannot be read; `damage` is `None` if another task counts it.
    pub(super) fn damaged(&mut self, damage: Option<Damage>) {
        self.batch.losses.damage.extend(damage);
        self.gap = true;
    }

    fn gap(&mut self, at: usize, from_ns: u64, to_ns: u64) {
        let gap = Gap { recording: self.recording, cpu: self.cpu, from_ns, to_ns };
        self.batch.gaps.push((at, gap));
    }

    /// Called after a page whose times are in order.
    pub(super) fn in_order(&mut self, missed: bool, (begin_ns, end_ns): (u64, u64)) {
        let from = std::mem::replace(&mut self.from, self.batch.events.len());
        if std::mem::take(&mut self.gap) || missed {
            // At the start of a block, the merger knows where the previous block ended.
            self.gap(from, self.batch.last_ns.unwrap_or(0), begin_ns);
        }
        self.batch.first_ns.get_or_insert(begin_ns);
        self.batch.last_ns = self.batch.last_ns.max(Some(begin_ns.max(end_ns)));
    }

    /// Called after a page with invalid times: see `PageWalk::out_of_order` for exits.
    #[cold]
    pub(super) fn out_of_order(&mut self, place_ns: u64) {
        let from = std::mem::replace(&mut self.from, self.batch.events.len());
        let place_ns = self.batch.last_ns.unwrap_or(place_ns);
        for event in self.batch.events.iter_mut().skip(from) {
            event.stamp_ns = place_ns;
        }
        self.gap(from, self.batch.last_ns.unwrap_or(0), place_ns.saturating_add(1));
        self.batch.first_ns.get_or_insert(place_ns);
        self.batch.last_ns = self.batch.last_ns.max(Some(place_ns));
        self.gap = true;
    }

    /// Ends the block; a loss at its end concerns the next block of the stream.
    pub(super) fn end(self) {
        self.batch.tail_gap = self.gap;
    }
}

impl TraceEventBatch {
    /// The stream has already reached a time after the start of this block: earlier events get that
    /// time.
    #[cold]
    pub(super) fn begin_at(&mut self, recording: u16, cpu: u16, reached_ns: u64) {
        let late = self.events.iter().take_while(|event| event.stamp_ns < reached_ns).count();
        for event in &mut self.events {
            event.stamp_ns = event.stamp_ns.max(reached_ns);
        }
        for (_, gap) in &mut self.gaps {
            gap.from_ns = gap.from_ns.max(reached_ns);
            gap.to_ns = gap.to_ns.max(reached_ns);
        }
        let next_ns = self.events.get(late).map(|next| next.stamp_ns);
        let gap = |to_ns| Gap { recording, cpu, from_ns: reached_ns, to_ns };
        if let Some(next_ns) = next_ns {
            let place = self.gaps.partition_point(|(at, _)| *at < late);
            self.gaps.insert(place, (late, gap(next_ns)));
        }
        self.tail_gap |= self.last_ns.is_none_or(|last_ns| last_ns < reached_ns);
        self.gaps.insert(0, (0, gap(reached_ns.saturating_add(1))));
        self.first_ns = self.first_ns.max(Some(reached_ns));
    }
}
