//! Strings that are written once and then called by a number.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::messages::{InternedData, InternedName};
use crate::Arg;

/// Strings at hand.
const RECENT: usize = 512;

/// Numbers of strings of one kind.
#[derive(Debug, Default)]
struct Table {
    numbers: FxHashMap<Arc<str>, u64>,
    /// In the order of their numbers; that of the first is 1, for 0 stands for none.
    all: Vec<Arc<str>>,
    /// By where a string lies in memory, the number of one that lay there: whoever writes the same names again and again
    /// has them in one place.
    recent: Vec<u64>,
}

impl Table {
    /// The string's number; one not written yet goes to `new`.
    #[inline]
    fn intern(&mut self, text: &str, new: &mut Vec<InternedName>) -> u64 {
        let place = place(text);
        let recent = self.recent.get(place).copied().unwrap_or(0);
        let known =
            usize::try_from(recent).ok().and_then(|number| self.all.get(number.wrapping_sub(1)));
        if known.is_some_and(|known| is_same(known.as_bytes(), text.as_bytes())) {
            return recent;
        }
        let number = self.look_up(text, new);
        self.recent.resize(RECENT, 0);
        if let Some(recent) = self.recent.get_mut(place) {
            *recent = number;
        }
        number
    }

    fn look_up(&mut self, text: &str, new: &mut Vec<InternedName>) -> u64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let text: Arc<str> = text.into();
        self.all.push(Arc::clone(&text));
        let number = self.all.len() as u64;
        new.push(InternedName { iid: Some(number), name: Some((*text).to_owned()) });
        self.numbers.insert(text, number);
        number
    }
}

/// Where the number of a text is at hand: texts of a program lie close together, and some begin in others.
#[inline]
fn place(text: &str) -> usize {
    let number = (text.as_ptr().addr() as u64).wrapping_add((text.len() as u64) << 32);
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as usize % RECENT
}

/// Whether texts are the same: most are short, and compared without a function being called for it.
#[inline]
fn is_same(first: &[u8], other: &[u8]) -> bool {
    fn ends<const N: usize>(text: &[u8]) -> (Option<&[u8; N]>, Option<&[u8; N]>) {
        (text.first_chunk(), text.last_chunk())
    }
    first.len() == other.len()
        && match first.len() {
            2..4 => ends::<2>(first) == ends::<2>(other),
            4..8 => ends::<4>(first) == ends::<4>(other),
            8..=16 => ends::<8>(first) == ends::<8>(other),
            17..=32 => ends::<16>(first) == ends::<16>(other),
            _ => first == other,
        }
}

/// Texts kept by number, at most: of a damaged recording each could be another.
const MAX_TEXTS: usize = 1 << 20;

/// All strings of the packets' sequence.
#[derive(Debug, Default)]
pub(super) struct Interned {
    categories: Table,
    names: Table,
    arg_names: Table,
    texts: Table,
    new: InternedData,
}

/// A value with the number of its name.
#[derive(Clone, Copy, Debug)]
pub(super) enum Annotation<'a> {
    Unsigned(u64, u64),
    Signed(u64, i64),
    Bool(u64, bool),
    /// A text by its number.
    Interned(u64, u64),
    Text(u64, &'a str),
}

impl Interned {
    pub(super) fn category(&mut self, text: &str) -> u64 {
        self.categories.intern(text, &mut self.new.event_categories)
    }

    pub(super) fn name(&mut self, text: &str) -> u64 {
        self.names.intern(text, &mut self.new.event_names)
    }

    /// A value, its name and its text by number where they have one.
    pub(super) fn annotation<'a>(&mut self, name: &str, arg: &Arg<'a>) -> Annotation<'a> {
        let name = self.arg_names.intern(name, &mut self.new.debug_annotation_names);
        match *arg {
            Arg::Number(number) => Annotation::Unsigned(name, number),
            Arg::Signed(number) => Annotation::Signed(name, number),
            Arg::Bool(yes) => Annotation::Bool(name, yes),
            Arg::Name(text) if self.texts.all.len() < MAX_TEXTS => {
                let new = &mut self.new.debug_annotation_string_values;
                Annotation::Interned(name, self.texts.intern(text, new))
            }
            Arg::Name(text) | Arg::Text(text) => Annotation::Text(name, text),
        }
    }

    /// What has to be written before or with the next packet.
    pub(super) fn take_new(&mut self) -> Option<InternedData> {
        let new = &self.new;
        let is_none = new.event_categories.is_empty()
            && new.event_names.is_empty()
            && new.debug_annotation_names.is_empty()
            && new.debug_annotation_string_values.is_empty();
        (!is_none).then(|| std::mem::take(&mut self.new))
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing)]
mod tests {
    use super::*;

    #[test]
    fn one_byte_makes_texts_differ() {
        for len in 0..50 {
            let text: Vec<u8> = (0..len).collect();
            assert!(is_same(&text, &text.clone()));
            assert!(!is_same(&text, &[&text[..], &[0]].concat()));
            for at in 0..text.len() {
                let mut other = text.clone();
                other[at] ^= 1;
                assert!(!is_same(&text, &other), "{at} of {len}");
            }
        }
    }
}
