//! Spans of a lane in few bytes each, in chunks that are never moved.
//!
//! A page may hold millions of spans, and most are short and follow each other closely: as numbers of
//! seven bits a byte they take 6 to 10 bytes in place of 24. Chunks of one size grow without the moment
//! in which a vector doubles, when half of the memory would do.

use std::collections::{VecDeque, vec_deque};

use super::merge::{Item, Merged};
use super::state::State;
use raw_bytes::seven_bits::{NUMBER_BYTES, put, take, take_byte};

/// Bytes of a chunk.
const CHUNK_BYTES: usize = 16 << 10;

/// Bytes of an item at most: its state, where it begins, how long it lasts, and its label or what was
/// merged into it.
const MOST_IN_ITEM: usize = 1 + 2 * NUMBER_BYTES + MOST_IN_SUMS;

/// Bytes of what was merged at most: a count of spans, one of states, and the time of each.
const MOST_IN_SUMS: usize = NUMBER_BYTES + 1 + State::COUNT * (1 + NUMBER_BYTES);

/// In place of a state: several spans, merged.
const SEVERAL: u8 = u8::MAX;

/// Items of a lane, in time order. Each is found only by those before it.
#[derive(Clone, Debug, Default)]
pub(super) struct Packed {
    chunks: VecDeque<Vec<u8>>,
    items: usize,
    end_ns: u64,
}

/// What was merged into an item, as bytes; none for a single span.
pub(super) type Sums<'p> = &'p [u8];

impl Packed {
    /// How many items there are.
    pub(super) const fn len(&self) -> usize {
        self.items
    }

    /// Bytes of memory that they take.
    pub(super) fn bytes(&self) -> usize {
        self.chunks.len() * CHUNK_BYTES
    }

    /// Appends an item that begins no earlier than the one before ends. `sums` is what was merged into
    /// it, if it is not a single span.
    pub(super) fn push(&mut self, item: &Item, sums: Sums<'_>) {
        let is_full = |chunk: &Vec<u8>| CHUNK_BYTES - chunk.len() < MOST_IN_ITEM;
        if self.chunks.back().is_none_or(is_full) {
            self.chunks.push_back(Vec::with_capacity(CHUNK_BYTES));
        }
        let Some(chunk) = self.chunks.back_mut() else { return };
        chunk.push(item.state.map_or(SEVERAL, State::number));
        put(chunk, item.from_ns.saturating_sub(self.end_ns));
        put(chunk, item.length_ns);
        match item.state {
            Some(_) => put(chunk, item.label.into()),
            None => chunk.extend_from_slice(sums),
        }
        self.items += 1;
        self.end_ns = item.to_ns();
    }

    /// All items, with what was merged into each.
    pub(super) fn iter(&self) -> Items<'_> {
        Items { chunks: self.chunks.iter(), rest: &[], end_ns: 0 }
    }

    /// Gives all items away; each chunk is freed when its items have been taken.
    pub(super) fn drain(mut self, mut take: impl FnMut(Item, Sums<'_>)) {
        let mut end_ns = 0;
        while let Some(chunk) = self.chunks.pop_front() {
            let mut rest = chunk.as_slice();
            while let Some((item, sums)) = take_item(&mut rest, end_ns) {
                end_ns = item.to_ns();
                take(item, sums);
            }
        }
    }
}

/// See [`Packed::iter`].
#[derive(Clone, Debug)]
pub(super) struct Items<'p> {
    chunks: vec_deque::Iter<'p, Vec<u8>>,
    rest: &'p [u8],
    end_ns: u64,
}

impl<'p> Iterator for Items<'p> {
    type Item = (Item, Sums<'p>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(found) = take_item(&mut self.rest, self.end_ns) {
                self.end_ns = found.0.to_ns();
                return Some(found);
            }
            self.rest = self.chunks.next()?;
        }
    }
}

/// The item at the beginning of `rest`, which follows one that ended at `end_ns`.
fn take_item<'p>(rest: &mut &'p [u8], end_ns: u64) -> Option<(Item, Sums<'p>)> {
    let state = State::ALL.get(usize::from(take_byte(rest)?)).copied();
    let from_ns = end_ns.saturating_add(take(rest)?);
    let length_ns = take(rest)?;
    if state.is_some() {
        let label = u32::try_from(take(rest)?).unwrap_or(0);
        return Some((Item { from_ns, length_ns, state, label }, &[]));
    }
    let all = *rest;
    take(rest)?;
    for _ in 0..take_byte(rest)? {
        take_byte(rest)?;
        take(rest)?;
    }
    let sums = all.get(..all.len() - rest.len())?;
    Some((Item { from_ns, length_ns, state, label: 0 }, sums))
}

impl Merged {
    /// As bytes.
    pub(super) fn packed(&self) -> Box<[u8]> {
        let mut bytes = Vec::with_capacity(MOST_IN_SUMS);
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
            let sums = if state.is_none() { merged.packed() } else { Box::default() };
            packed.push(&item, &sums);
            expected.push((item, sums));
        }
        assert_eq!(packed.len(), expected.len());
        assert!(packed.bytes() > 3 * CHUNK_BYTES);
        let pairs = expected.iter().map(|(item, sums)| (*item, &**sums));
        assert!(packed.iter().eq(pairs));
        assert_eq!(Merged::unpacked(&merged.packed()), merged);
        let mut left = expected.iter();
        packed.drain(|item, sums| {
            assert!(left.next().is_some_and(|one| one.0 == item && *one.1 == *sums));
        });
        assert_eq!(left.next(), None);
    }
}
