//! Spans of a lane in few bytes each, as a page carries them: column by column, in chunks that are never moved.
//!
//! A page may hold millions of spans, and most are short and follow each other closely: as numbers of
//! seven bits a byte they take 6 to 10 bytes in place of 24. Chunks are as long as what is in them: memory grows
//! without the moment in which a vector doubles. What a page writes are these bytes, so they are not unpacked for it.

use std::collections::{VecDeque, vec_deque};

use super::merge::{Item, Merged};
use super::state::State;
use raw_bytes::seven_bits::{NUMBER_BYTES, put, take, take_byte};

/// Columns of items, in the order of the page's: how long after the end of the one before it an item begins, its length,
/// its state, its label, and what was merged into it.
pub(super) const COLUMNS: usize = 5;
pub(super) const BEGINS: usize = 0;

/// Bytes of what was merged at most: a count of spans, one of states, and the time of each.
const MAX_IN_SUMS: usize = NUMBER_BYTES + 1 + State::COUNT * (1 + NUMBER_BYTES);

/// In place of a state: several spans, merged.
const SEVERAL: u8 = u8::MAX;

/// What was merged into an item, as bytes; none for a single span.
pub(super) type Sums<'p> = &'p [u8];

/// Items that were packed together.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    /// The columns, one after the other.
    bytes: Box<[u8]>,
    /// Where each of them ends.
    ends: [u32; COLUMNS],
}

impl Chunk {
    /// Packs items, the first of which follows one that ended at `end_ns`.
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

    /// Bytes of memory that it takes.
    fn memory(&self) -> usize {
        self.bytes.len() + size_of::<Self>()
    }

    pub(super) fn column(&self, at: usize) -> &[u8] {
        let end = |at: usize| self.ends.get(at).map_or(0, |&end| end as usize);
        let from = at.checked_sub(1).map_or(0, end);
        self.bytes.get(from..end(at)).unwrap_or_default()
    }

    /// The column of begins with its first number for another moment that items follow: that number, and the others.
    pub(super) fn begins_after(&self, origin_ns: u64) -> (Vec<u8>, &[u8]) {
        let (mut rest, mut first) = (self.column(BEGINS), Vec::new());
        if let Some(from_ns) = take(&mut rest) {
            put(&mut first, from_ns.saturating_sub(origin_ns));
        }
        (first, rest)
    }

    /// Its items, the first of which follows one that ended at `end_ns`.
    fn items(&self, end_ns: u64) -> ChunkItems<'_> {
        ChunkItems { rest: std::array::from_fn(|at| self.column(at)), end_ns }
    }
}

/// See [`Chunk::items`].
#[derive(Clone, Debug, Default)]
struct ChunkItems<'c> {
    /// What is left of each column.
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

/// What was merged into one item, at the beginning of `rest`.
fn take_sums<'p>(rest: &mut &'p [u8]) -> Option<Sums<'p>> {
    let all = *rest;
    take(rest)?;
    for _ in 0..take_byte(rest)? {
        take_byte(rest)?;
        take(rest)?;
    }
    all.get(..all.len() - rest.len())
}

/// Items of a lane, in time order. Each is found only by those before it.
#[derive(Clone, Debug, Default)]
pub(super) struct Packed {
    chunks: VecDeque<Chunk>,
    items: usize,
    bytes: usize,
    end_ns: u64,
}

impl Packed {
    /// How many items there are.
    pub(super) const fn len(&self) -> usize {
        self.items
    }

    /// Bytes of memory that they take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The moment that the last one ends.
    pub(super) const fn end_ns(&self) -> u64 {
        self.end_ns
    }

    /// Appends items that begin no earlier than the one before ends, each with what was merged into it, if it is not a
    /// single span.
    pub(super) fn push(&mut self, items: &[(Item, Option<Box<[u8]>>)]) {
        let Some((last, _)) = items.last() else { return };
        let each = items.iter().map(|(item, sums)| (*item, sums.as_deref().unwrap_or_default()));
        let chunk = Chunk::pack(each, self.end_ns);
        self.items += items.len();
        self.bytes += chunk.memory();
        self.end_ns = last.to_ns();
        self.chunks.push_back(chunk);
    }

    /// The chunks, in order.
    pub(super) fn chunks(&self) -> impl Iterator<Item = &Chunk> {
        self.chunks.iter()
    }

    /// All items, with what was merged into each.
    pub(super) fn iter(&self) -> Items<'_> {
        Items { chunks: self.chunks.iter(), items: ChunkItems::default() }
    }

    /// Gives all items away; each chunk is freed when its items have been taken.
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
    /// As bytes.
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

    /// What [`Merged::packed`] made bytes of.
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
