//! Iterates over the intact entries of a file.

use super::entry::{ENTRY_HEAD_BYTES, Entry, MARK, sum};
use super::fields::Fields;

/// Alignment of entries.
const STEP: usize = 8;

/// Reads entries; skips and counts invalid bytes.
#[derive(Clone, Debug)]
pub struct Entries<'b> {
    rest: &'b [u8],
    damaged_bytes: u64,
}

impl<'b> Entries<'b> {
    /// The entries in these bytes.
    #[must_use]
    pub fn new(bytes: &'b [u8]) -> Self {
        Self { rest: bytes, damaged_bytes: 0 }
    }

    /// Number of invalid bytes so far.
    #[must_use]
    pub fn damaged_bytes(&self) -> u64 {
        self.damaged_bytes
    }

    /// The entry at the current position, and the bytes after it.
    fn first(&self) -> Option<(Entry, &'b [u8])> {
        let mut fields = Fields(self.rest);
        let head: [u8; 4] = fields.array()?;
        let [mark, other, kind, words] = head;
        let stored_sum = fields.u32()?;
        let (content, rest) = fields.0.split_at_checked(usize::from(words).checked_mul(8)?)?;
        if [mark, other] != MARK || sum(head, content) != stored_sum {
            return None;
        }
        Some((Entry::parse(kind, content)?, rest))
    }
}

impl Iterator for Entries<'_> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        const { assert!(ENTRY_HEAD_BYTES.is_multiple_of(STEP)) }
        while !self.rest.is_empty() {
            if let Some((entry, rest)) = self.first() {
                self.rest = rest;
                return Some(entry);
            }
            let step = STEP.min(self.rest.len());
            self.damaged_bytes = self.damaged_bytes.saturating_add(step as u64);
            self.rest = self.rest.get(step..).unwrap_or_default();
        }
        None
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, clippy::arithmetic_side_effects)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::collected::{Begin, ClockPair, Counts, Hypercall, VERSION, Words};

    fn entries(hypercalls: u64) -> Vec<Entry> {
        let begin = Begin { version: VERSION, clock: "x86-tsc".into(), ..Begin::default() };
        let mut all = vec![Entry::Begin(begin), Entry::Pair(ClockPair::default())];
        let hypercall = |at: u64| {
            let words = Words::new(&[at; 13]);
            Entry::Hypercall(Hypercall { exit_mono_ns: at, words, ..Hypercall::default() })
        };
        all.extend((0..hypercalls).map(hypercall));
        all.push(Entry::Counts(Counts { hypercalls, ..Counts::default() }));
        all
    }

    fn bytes(entries: &[Entry]) -> Vec<u8> {
        entries.iter().flat_map(Entry::to_bytes).collect()
    }

    proptest! {
        #[test]
        fn a_damaged_byte_costs_the_entry_it_is_in_and_no_other(
            hypercalls in 0..20_u64,
            at in any::<prop::sample::Index>(),
            with in 1..=255_u8,
        ) {
            let written = entries(hypercalls);
            let mut file = bytes(&written);
            let at = at.index(file.len());
            file[at] ^= with;
            let mut read = Entries::new(&file);
            let found: Vec<Entry> = read.by_ref().collect();
            // The damaged entry's content has no magic bytes.
            let sizes = written.iter().map(|entry| entry.to_bytes().len());
            let mut end = 0;
            let ends: Vec<usize> = sizes.map(|size| { end += size; end }).collect();
            let hit = ends.iter().position(|&end| at < end).unwrap();
            let mut expected = written.clone();
            let gone = expected.remove(hit);
            prop_assert_eq!(found, expected);
            prop_assert_eq!(read.damaged_bytes(), gone.to_bytes().len() as u64);
        }

        #[test]
        fn a_file_that_was_cut_holds_what_is_before(
            hypercalls in 0..20_u64,
            at in any::<prop::sample::Index>(),
        ) {
            let written = entries(hypercalls);
            let file = bytes(&written);
            let cut = &file[..at.index(file.len())];
            let found: Vec<Entry> = Entries::new(cut).collect();
            prop_assert_eq!(&found[..], &written[..found.len()]);
            prop_assert!(bytes(&found).len() + 160 > cut.len());
        }

        #[test]
        fn any_bytes_are_read_to_their_end(file in prop::collection::vec(any::<u8>(), 0..400)) {
            let mut read = Entries::new(&file);
            let intact_bytes: usize = read.by_ref().map(|entry| entry.to_bytes().len()).sum();
            prop_assert_eq!(intact_bytes as u64 + read.damaged_bytes(), file.len() as u64);
        }
    }

    #[test]
    fn kinds_that_are_not_known_are_passed_over() {
        let mut written = entries(2);
        written.insert(2, Entry::Unknown(200));
        let file = bytes(&written);
        let mut read = Entries::new(&file);
        assert!(read.by_ref().eq(written));
        assert_eq!(read.damaged_bytes(), 0);
    }
}
