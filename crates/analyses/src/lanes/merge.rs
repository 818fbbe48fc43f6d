//! How a lane keeps its spans few: short neighbours become one, and what was in them is summed.

use super::state::State;
use super::{Lane, Span};

/// A span, or several that were merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// First moment.
    pub from_ns: u64,
    /// How long it lasts.
    pub length_ns: u64,
    /// The state; `None`: several spans, see the lane's [`Lane::merged`].
    pub state: Option<State>,
    /// Number of the label of a span; of merged ones its place among the lane's.
    pub label: u32,
}

impl Item {
    /// First moment after it.
    #[must_use]
    pub const fn to_ns(&self) -> u64 {
        self.from_ns.saturating_add(self.length_ns)
    }
}

/// A span may come so many spans late.
const LATEST: usize = 4096;

/// What was merged into one item. Where its states don't add up to its length there were gaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Spans in it.
    pub count: u64,
    /// Time by state, in the order of [`State::ALL`].
    pub state_ns: [u64; State::COUNT],
}

impl Merged {
    fn add(&mut self, item: &Item, of: &[Self]) {
        match item.state {
            Some(state) => {
                self.count += 1;
                if let Some(sum) = self.state_ns.get_mut(usize::from(state.number())) {
                    *sum += item.length_ns;
                }
            }
            None => {
                let Some(other) = of.get(item.label as usize) else { return };
                self.count += other.count;
                for (sum, more) in self.state_ns.iter_mut().zip(other.state_ns) {
                    *sum += more;
                }
            }
        }
    }
}

impl Lane {
    /// Adds a span, merged with the one before if both are short; false if it is empty.
    pub(super) fn push(&mut self, span: Span, merge_below_ns: u64) -> bool {
        if self.items.last().is_some_and(|last| span.from_ns < last.from_ns) {
            return self.insert(span);
        }
        let end_ns = self.items.last().map_or(0, Item::to_ns);
        let from_ns = span.from_ns.max(end_ns);
        if span.to_ns <= from_ns {
            return false;
        }
        let state = Some(span.state);
        let length_ns = span.to_ns - from_ns;
        self.append(Item { from_ns, length_ns, state, label: span.label }, &[], merge_below_ns);
        true
    }

    /// Adds a span that comes late: a task that moved is told of by one vCPU before the other. It
    /// is put in its place whole or, where there is no room, in part.
    fn insert(&mut self, span: Span) -> bool {
        let reached = self.items.len().saturating_sub(LATEST);
        let late = self.items.get(reached..).unwrap_or(&[]);
        let at = reached + late.partition_point(|item| item.from_ns <= span.from_ns);
        if at == reached && reached > 0 {
            return false;
        }
        let before = at.checked_sub(1).and_then(|before| self.items.get(before));
        let from_ns = span.from_ns.max(before.map_or(0, Item::to_ns));
        let to_ns = span.to_ns.min(self.items.get(at).map_or(u64::MAX, |item| item.from_ns));
        if to_ns <= from_ns {
            return false;
        }
        let (length_ns, state) = (to_ns - from_ns, Some(span.state));
        self.items.insert(at, Item { from_ns, length_ns, state, label: span.label });
        true
    }

    /// Appends an item; `theirs` holds what is in it if it was merged before.
    fn append(&mut self, item: Item, theirs: &[Merged], merge_below_ns: u64) {
        let short = |length_ns| length_ns < merge_below_ns;
        if let Some(last) = self.items.last_mut()
            && short(last.length_ns)
            && short(item.length_ns)
            && short(item.from_ns.saturating_sub(last.to_ns()))
        {
            if last.state.is_some() {
                let mut first = Merged::default();
                first.add(last, &[]);
                last.label = self.merged.len() as u32;
                last.state = None;
                self.merged.push(first);
            }
            if let Some(sums) = self.merged.get_mut(last.label as usize) {
                sums.add(&item, theirs);
            }
            last.length_ns = item.to_ns().saturating_sub(last.from_ns);
            return;
        }
        let mut item = item;
        if item.state.is_none() {
            let mut sums = Merged::default();
            sums.add(&item, theirs);
            item.label = self.merged.len() as u32;
            self.merged.push(sums);
        }
        self.items.push(item);
    }

    /// Merges what is shorter than this now. Of two neighbours one is long afterwards, or the gap
    /// between them is, so that a lane of a length has a bounded number of items.
    pub(super) fn compact(&mut self, merge_below_ns: u64) {
        let items = std::mem::take(&mut self.items);
        let merged = std::mem::take(&mut self.merged);
        for item in items {
            self.append(item, &merged, merge_below_ns);
        }
    }
}
