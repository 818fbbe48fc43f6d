//! What a block becomes: the events that are wanted, and what was lost between its pages.

use sources::Damage;

use super::names::BatchNames;
use super::{Gap, TraceEvent};
use crate::losses::BatchLosses;
use crate::rounds::Batch;
use crate::stamps::BlockStamps;

/// What a block becomes.
#[derive(Debug, Default)]
pub(crate) struct TraceEventBatch {
    /// In time order, unless the page is damaged.
    pub(crate) events: Vec<TraceEvent>,
    /// In the order of the moments that come next, with the index of that one.
    pub(super) gaps: Vec<(usize, Gap)>,
    pub(super) names: BatchNames,
    pub(super) first_ns: Option<u64>,
    pub(super) last_ns: Option<u64>,
    /// Something after the last readable page could not be read.
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

/// Keeps account of losses from page to page of one block.
pub(super) struct Walk<'b> {
    pub(super) recording: u16,
    pub(super) cpu: u16,
    /// Something was lost since the last page in order.
    gap: bool,
    /// The events of the page that is being read are those from here on.
    from: usize,
    pub(super) batch: &'b mut TraceEventBatch,
}

impl<'b> Walk<'b> {
    pub(super) fn new(recording: u16, cpu: u16, batch: &'b mut TraceEventBatch) -> Self {
        Self { recording, cpu, gap: false, from: 0, batch }
    }

    /// A page, or the rest of one, can't be read; with the damage, unless another counts it.
    pub(super) fn damaged(&mut self, damage: Option<Damage>) {
        self.batch.losses.damage.extend(damage);
        self.gap = true;
    }

    fn gap(&mut self, at: usize, from_ns: u64, to_ns: u64) {
        let gap = Gap { recording: self.recording, cpu: self.cpu, from_ns, to_ns };
        self.batch.gaps.push((at, gap));
    }

    /// A page was read whose times are in order.
    pub(super) fn in_order(&mut self, missed: bool, (begin_ns, end_ns): (u64, u64)) {
        let from = std::mem::replace(&mut self.from, self.batch.events.len());
        if std::mem::take(&mut self.gap) || missed {
            // At a block's beginning, the merger knows how far the block before it went.
            self.gap(from, self.batch.last_ns.unwrap_or(0), begin_ns);
        }
        self.batch.first_ns.get_or_insert(begin_ns);
        self.batch.last_ns = self.batch.last_ns.max(Some(begin_ns.max(end_ns)));
    }

    /// A page was read whose times mean nothing: as in `PageWalk::out_of_order` of exits.
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

    /// The block ends; a loss at its end concerns the next block of the stream.
    pub(super) fn end(self) {
        self.batch.tail_gap = self.gap;
    }
}

impl TraceEventBatch {
    /// The stream had reached a later moment than that at which this block begins: what is before it
    /// has no time of its own.
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
