//! Limits the spans of a lane: merges short neighbours and sums their times.

use std::collections::VecDeque;

use super::Span;
use super::packed::{BEGINS, COLUMNS, Chunk, Packed, Sums};
use super::state::State;

/// A span, or several merged spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// Start.
    pub from_ns: u64,
    /// Duration.
    pub length_ns: u64,
    /// The state; `None` for merged spans, see the lane's [`Lane::merged`].
    pub state: Option<State>,
    /// Number of the span's label; 0 for merged spans.
    pub label: u32,
}

impl Item {
    /// End, exclusive.
    #[must_use]
    pub const fn to_ns(&self) -> u64 {
        self.from_ns.saturating_add(self.length_ns)
    }
}

/// Sums of merged spans. If the states' times are less than the item's length, there were gaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Merged {
    /// Number of spans.
    pub count: u64,
    /// Times by state, in the order of [`State::ALL`].
    pub state_ns: [u64; State::COUNT],
}

impl Merged {
    /// Adds an item; `sums` has the item's own sums if it is merged.
    fn add(&mut self, item: &Item, sums: Sums<'_>) {
        match item.state {
            Some(state) => {
                self.count += 1;
                if let Some(sum) = self.state_ns.get_mut(usize::from(state.number())) {
                    *sum += item.length_ns;
                }
            }
            None => {
                let other = Self::unpacked(sums);
                self.count += other.count;
                for (sum, more) in self.state_ns.iter_mut().zip(other.state_ns) {
                    *sum += more;
                }
            }
        }
    }
}

/// Max delay of a span, in spans: this many spans of a lane stay unpacked.
const LATEST: usize = 4096;

/// Number of spans to pack at once.
const PACKED_AT_ONCE: usize = 512;

/// Items of a lane by time: recent ones are unpacked, so that late spans can be inserted; older ones are packed.
#[derive(Clone, Debug, Default)]
pub(super) struct Items {
    packed: Packed,
    recent: VecDeque<Item>,
    /// Sums of the merged items in `recent`, except for the last item.
    recent_sums: VecDeque<Box<[u8]>>,
    sums_bytes: usize,
    /// Sums of the last item.
    last_sums: Option<Box<Merged>>,
    /// Total duration of all items.
    covered_ns: u64,
}

impl Items {
    pub(super) fn covered_ns(&self) -> u64 {
        self.covered_ns
    }

    pub(super) fn len(&self) -> usize {
        self.packed.len() + self.recent.len()
    }

    /// Memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.packed.bytes() + self.recent.capacity() * size_of::<Item>() + self.sums_bytes
    }

    pub(super) fn last(&self) -> Option<&Item> {
        self.recent.back()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Item> {
        self.packed.iter().map(|(item, _)| item).chain(self.recent.iter().copied())
    }

    /// Sums of the merged items.
    #[cfg(test)]
    pub(super) fn merged(&self) -> impl Iterator<Item = Merged> {
        let packed = self.packed.iter().filter(|(item, _)| item.state.is_none());
        let sums = packed.map(|(_, sums)| sums).chain(self.recent_sums.iter().map(|sums| &**sums));
        sums.map(Merged::unpacked).chain(self.last_sums.as_deref().copied())
    }

    /// Gives `take` the bytes of all columns in the page's format, in order and piece by piece. The first start
    /// time is relative to `origin_ns`.
    ///
    /// # Errors
    ///
    /// Errors of `take`.
    pub(super) fn columns<E>(
        &self,
        origin_ns: u64,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let last_sums = self.last_sums.as_ref().map(|merged| merged.packed());
        let sums = self.recent_sums.iter().chain(&last_sums).map(|sums| &**sums);
        let recent = with_sums(self.recent.iter().copied(), sums);
        let recent = recent.map(|(item, sums)| (item, sums.unwrap_or_default()));
        let recent = Chunk::pack(recent, self.packed.end_ns());
        for column in 0..COLUMNS {
            for (at, chunk) in self.packed.chunks().chain([&recent]).enumerate() {
                if (column, at) == (BEGINS, 0) {
                    let (first, others) = chunk.begins_after(origin_ns);
                    take(&first)?;
                    take(others)?;
                } else {
                    take(chunk.column(column))?;
                }
            }
        }
        Ok(())
    }

    /// Adds a span, or merges it with the previous one if both are short; returns false for an empty span.
    pub(super) fn push(&mut self, span: Span, merge_below_ns: u64) -> bool {
        if self.last().is_some_and(|last| span.from_ns < last.from_ns) {
            return self.insert(span);
        }
        let end_ns = self.last().map_or(0, Item::to_ns);
        let from_ns = span.from_ns.max(end_ns);
        if span.to_ns <= from_ns {
            return false;
        }
        let state = Some(span.state);
        let length_ns = span.to_ns - from_ns;
        self.append(Item { from_ns, length_ns, state, label: span.label }, &[], merge_below_ns);
        true
    }

    /// Inserts a late span: one vCPU can report a migrated task before the other vCPU does. Overlaps are cut off.
    fn insert(&mut self, span: Span) -> bool {
        let reached = self.recent.len().saturating_sub(LATEST);
        let at = self.recent.partition_point(|item| item.from_ns <= span.from_ns).max(reached);
        if at == reached && reached + self.packed.len() > 0 {
            return false;
        }
        let before = at.checked_sub(1).and_then(|before| self.recent.get(before));
        let from_ns = span.from_ns.max(before.map_or(0, Item::to_ns));
        let to_ns = span.to_ns.min(self.recent.get(at).map_or(u64::MAX, |item| item.from_ns));
        if to_ns <= from_ns {
            return false;
        }
        let (length_ns, state) = (to_ns - from_ns, Some(span.state));
        self.recent.insert(at, Item { from_ns, length_ns, state, label: span.label });
        self.covered_ns = self.covered_ns.saturating_add(length_ns);
        self.pack_old();
        true
    }

    /// Appends an item; `sums` has its sums if it is merged.
    fn append(&mut self, item: Item, sums: Sums<'_>, merge_below_ns: u64) {
        let short = |length_ns| length_ns < merge_below_ns;
        if let Some(last) = self.recent.back_mut()
            && short(last.length_ns)
            && short(item.length_ns)
            && short(item.from_ns.saturating_sub(last.to_ns()))
        {
            let merged = self.last_sums.get_or_insert_with(|| {
                let mut first = Merged::default();
                first.add(last, &[]);
                Box::new(first)
            });
            merged.add(&item, sums);
            (last.state, last.label) = (None, 0);
            let length_ns = item.to_ns().saturating_sub(last.from_ns);
            self.covered_ns =
                self.covered_ns.saturating_add(length_ns.saturating_sub(last.length_ns));
            last.length_ns = length_ns;
            return;
        }
        self.covered_ns = self.covered_ns.saturating_add(item.length_ns);
        if let Some(merged) = self.last_sums.take() {
            let packed = merged.packed();
            self.sums_bytes += sums_cost(&packed);
            self.recent_sums.push_back(packed);
        }
        self.last_sums = item.state.is_none().then(|| Box::new(Merged::unpacked(sums)));
        if self.recent.len() == self.recent.capacity() && self.recent.len() > LATEST / 2 {
            self.recent.reserve_exact(LATEST + PACKED_AT_ONCE - self.recent.len());
        }
        self.recent.push_back(item);
        self.pack_old();
    }

    /// Packs items that no late span can precede.
    fn pack_old(&mut self) {
        if self.recent.len() < LATEST + PACKED_AT_ONCE {
            return;
        }
        let sums = std::iter::from_fn(|| self.recent_sums.pop_front());
        let old: Vec<_> = with_sums(self.recent.drain(..PACKED_AT_ONCE), sums).collect();
        let sums = old.iter().filter_map(|(_, sums)| sums.as_deref());
        self.sums_bytes -= sums.map(sums_cost).sum::<usize>();
        self.packed.push(&old);
    }

    /// Merges items with a new threshold. Afterwards, of two neighbours and the gap between them, one is long, so
    /// the number of items is bounded by the lane's length.
    pub(super) fn compact(&mut self, merge_below_ns: u64) {
        let Self { packed, recent, mut recent_sums, last_sums, .. } = std::mem::take(self);
        recent_sums.extend(last_sums.map(|merged| merged.packed()));
        packed.drain(|item, sums| self.append(item, sums, merge_below_ns));
        for (item, sums) in with_sums(recent.into_iter(), recent_sums.into_iter()) {
            self.append(item, sums.as_deref().unwrap_or(&[]), merge_below_ns);
        }
    }
}

/// Pairs items with their sums: `sums` has those of merged items, in order.
fn with_sums<S>(
    items: impl Iterator<Item = Item>,
    mut sums: impl Iterator<Item = S>,
) -> impl Iterator<Item = (Item, Option<S>)> {
    items.map(move |item| (item, if item.state.is_none() { sums.next() } else { None }))
}

/// Memory of an unpacked item's sums: the bytes, the pointer, and the allocator's overhead.
fn sums_cost(sums: &[u8]) -> usize {
    sums.len() + 32
}
