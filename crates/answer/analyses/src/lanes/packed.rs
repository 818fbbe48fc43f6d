//! Packed spans of a lane in the page's format: columns, in chunks that are never moved.
//!
//! A page can hold millions of spans, most of which are short and close to each other: as variable-length integers
//! of seven bits per byte, they take 6 to 10 bytes instead of 24. Each chunk has its exact size, so memory never
//! doubles temporarily as in a growing vector. The page contains these bytes unchanged.

use std::collections::{VecDeque, vec_deque};

use super::merge::{Item, Merged};
use super::state::State;
use raw_bytes::seven_bits::{NUMBER_BYTES, put, take, take_byte};

/// Columns in the page's order: distance from the previous item's end, length, state, label, and sums of merged
/// spans.
pub(super) const COLUMNS: usize = 5;
pub(super) const BEGINS: usize = 0;

/// Max bytes of the sums: number of spans, number of states, and the time of each.
const MAX_IN_SUMS: usize = NUMBER_BYTES + 1 + State::COUNT * (1 + NUMBER_BYTES);

/// State number of merged spans.
const SEVERAL: u8 = u8::MAX;

/// Packed sums of a merged item; empty for a single span.
pub(super) type Sums<'p> = &'p [u8];

/// A chunk of packed items.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    /// The columns, one after the other.
    bytes: Box<[u8]>,
    /// End offset of each column.
    ends: [u32; COLUMNS],
}

impl Chunk {
    /// Packs items; the item before the first one ended at `end_ns`.
    pub(super) fn pack<'s>(items: impl Iterator<Item = (Item, Sums<'s>)>, mut end_ns: u64) -> Self {
        let mut columns = <[Vec<u8>; COLUMNS]>::default();
        let [begins, lengths, states, labels, merged] = &mut columns;
        for (item, sums) in items {
            put(begins, item.from_ns.saturating_sub(end_ns));
            put(lengths, item.length_ns);
            states.push(item.state.map_or(SEVERAL, State::number));
            put(labels, item.state.map_or(0, |_| item.label.into()));
            merged.extend_from_slice(sums);
            end_ns = item.to_ns();
        }
        let mut end = 0;
        let ends = columns.each_ref().map(|column| {
            end += column.len();
            u32::try_from(end).unwrap_or(u32::MAX)
        });
        Self { bytes: columns.concat().into_boxed_slice(), ends }
    }

    /// Memory in bytes.
    fn memory(&self) -> usize {
        self.bytes.len() + size_of::<Self>()
    }

    pub(super) fn column(&self, at: usize) -> &[u8] {
        let end = |at: usize| self.ends.get(at).map_or(0, |&end| end as usize);
        let from = at.checked_sub(1).map_or(0, end);
        self.bytes.get(from..end(at)).unwrap_or_default()
    }

    /// The column of starts for another origin: the new first number, and the remaining bytes.
    pub(super) fn begins_after(&self, origin_ns: u64) -> (Vec<u8>, &[u8]) {
        let (mut rest, mut first) = (self.column(BEGINS), Vec::new());
        if let Some(from_ns) = take(&mut rest) {
            put(&mut first, from_ns.saturating_sub(origin_ns));
        }
        (first, rest)
    }

    /// Iterates over the items; the item before the first one ended at `end_ns`.
    fn items(&self, end_ns: u64) -> ChunkItems<'_> {
        ChunkItems { rest: std::array::from_fn(|at| self.column(at)), end_ns }
    }
}

/// See [`Chunk::items`].
#[derive(Clone, Debug, Default)]
struct ChunkItems<'c> {
    /// Remaining bytes of each column.
    rest: [&'c [u8]; COLUMNS],
    end_ns: u64,
}

impl<'c> Iterator for ChunkItems<'c> {
    type Item = (Item, Sums<'c>);

    fn next(&mut self) -> Option<Self::Item> {
        let [begins, lengths, states, labels, merged] = &mut self.rest;
        let state = State::ALL.get(usize::from(take_byte(states)?)).copied();
        let from_ns = self.end_ns.saturating_add(take(begins)?);
        let length_ns = take(lengths)?;
        let label = u32::try_from(take(labels)?).unwrap_or(0);
        let sums = if state.is_some() { &[] } else { take_sums(merged)? };
        let item = Item { from_ns, length_ns, state, label };
        self.end_ns = item.to_ns();
        Some((item, sums))
    }
}

/// Splits off the sums of one item at the start of `rest`.
fn take_sums<'p>(rest: &mut &'p [u8]) -> Option<Sums<'p>> {
    let all = *rest;
    take(rest)?;
    for _ in 0..take_byte(rest)? {
        take_byte(rest)?;
        take(rest)?;
    }
    all.get(..all.len() - rest.len())
}

/// Packed items of a lane by time. Items are relative to their predecessors, so access is sequential.
#[derive(Clone, Debug, Default)]
pub(super) struct Packed {
    chunks: VecDeque<Chunk>,
    items: usize,
    bytes: usize,
    end_ns: u64,
}

impl Packed {
    pub(super) const fn len(&self) -> usize {
        self.items
    }

    /// Memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// End of the last item.
    pub(super) const fn end_ns(&self) -> u64 {
        self.end_ns
    }

    /// Appends items, with the sums of merged items. No item begins before its predecessor ends.
    pub(super) fn push(&mut self, items: &[(Item, Option<Box<[u8]>>)]) {
        let Some((last, _)) = items.last() else { return };
        let each = items.iter().map(|(item, sums)| (*item, sums.as_deref().unwrap_or_default()));
        let chunk = Chunk::pack(each, self.end_ns);
        self.items += items.len();
        self.bytes += chunk.memory();
        self.end_ns = last.to_ns();
        self.chunks.push_back(chunk);
    }

    pub(super) fn chunks(&self) -> impl Iterator<Item = &Chunk> {
        self.chunks.iter()
    }

    /// All items with their sums.
    pub(super) fn iter(&self) -> Items<'_> {
        Items { chunks: self.chunks.iter(), items: ChunkItems::default() }
    }

    /// Consumes all items; each chunk is freed after its items were taken.
    pub(super) fn drain(mut self, mut take: impl FnMut(Item, Sums<'_>)) {
        let mut end_ns = 0;
        while let Some(chunk) = self.chunks.pop_front() {
            let mut items = chunk.items(end_ns);
            items.by_ref().for_each(|(item, sums)| take(item, sums));
            end_ns = items.end_ns;
        }
    }
}

/// See [`Packed::iter`].
#[derive(Clone, Debug)]
pub(super) struct Items<'p> {
    chunks: vec_deque::Iter<'p, Chunk>,
    items: ChunkItems<'p>,
}

impl<'p> Iterator for Items<'p> {
    type Item = (Item, Sums<'p>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(found) = self.items.next() {
                return Some(found);
            }
            self.items = self.chunks.next()?.items(self.items.end_ns);
        }
    }
}

impl Merged {
    pub(super) fn packed(&self) -> Box<[u8]> {
        let mut bytes = Vec::with_capacity(MAX_IN_SUMS);
        let states = || (0u8..).zip(self.state_ns).filter(|(_, ns)| *ns > 0);
        put(&mut bytes, self.count);
        bytes.push(states().count() as u8);
        for (state, ns) in states() {
            bytes.push(state);
            put(&mut bytes, ns);
        }
        bytes.into_boxed_slice()
    }

    /// Reverses [`Merged::packed`].
    pub(super) fn unpacked(mut bytes: Sums<'_>) -> Self {
        let mut merged = Self { count: take(&mut bytes).unwrap_or(0), ..Self::default() };
        for _ in 0..take_byte(&mut bytes).unwrap_or(0) {
            let (state, ns) = (take_byte(&mut bytes), take(&mut bytes));
            let sum = state.and_then(|state| merged.state_ns.get_mut(usize::from(state)));
            if let (Some(sum), Some(ns)) = (sum, ns) {
                *sum = ns;
            }
        }
        merged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_back() {
        let states = State::ALL.into_iter().map(Some).chain([None]).cycle();
        let mut merged = Merged { count: u64::MAX, ..Merged::default() };
        merged.state_ns = std::array::from_fn(|at| u64::MAX >> at);
        let (mut packed, mut expected, mut at_ns) = (Packed::default(), Vec::new(), 5);
        for (number, state) in (0..20_000u32).zip(states) {
            let length_ns = u64::from(number).pow(3) + 1;
            let label = state.map_or(0, |_| u32::MAX - number);
            let item = Item { from_ns: at_ns, length_ns, state, label };
            at_ns = item.to_ns() + u64::from(number % 3) * 1000;
            expected.push((item, state.is_none().then(|| merged.packed())));
        }
        expected.chunks(300).for_each(|some| packed.push(some));
        assert_eq!((packed.len(), packed.chunks().count()), (expected.len(), 67));
        let sizes: usize = packed.chunks().map(|chunk| chunk.bytes.len()).sum();
        assert!(packed.bytes() > sizes && packed.bytes() < sizes + 67 * 64);
        let sums = |sums: &Option<Box<[u8]>>| sums.clone().unwrap_or_default();
        let pairs = packed.iter().map(|(item, sums)| (item, Box::from(sums)));
        assert!(pairs.eq(expected.iter().map(|(item, merged)| (*item, sums(merged)))));
        assert_eq!(Merged::unpacked(&merged.packed()), merged);
        let mut remaining = expected.iter();
        packed.drain(|item, found| {
            let expected_item = remaining.next().unwrap();
            assert_eq!((expected_item.0, &*sums(&expected_item.1)), (item, found));
        });
        assert_eq!(remaining.next(), None);
    }
}
