//! Interned strings: written once, then referenced by number.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::messages::{InternedData, InternedName};
use crate::Arg;

/// Number of recently used strings that are found without hashing their text.
const RECENT: usize = 512;

/// Numbers of strings of one kind.
#[derive(Debug, Default)]
struct Table {
    numbers: FxHashMap<Arc<str>, u64>,
    /// In the order of their numbers. The first is 1; 0 means none.
    all: Vec<Arc<str>>,
    /// By memory address, the number of the string last seen there: a caller that repeats a name mostly passes the same
    /// memory.
    recent: Vec<u64>,
}

impl Table {
    /// The string's number; a string without one is added to `new`.
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

/// The slot for a text's number. It uses address and length: texts of a program lie close together, and some have
/// the same address but another length.
#[inline]
fn place(text: &str) -> usize {
    let number = (text.as_ptr().addr() as u64).wrapping_add((text.len() as u64) << 32);
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as usize % RECENT
}

/// Whether texts are equal. Most are short, and are compared without a function call.
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

/// Max number of interned texts: in a damaged recording each could be different.
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
    /// The numbers of its name and of its text.
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

    /// A value with the number of its name, and of its text if that is repeated.
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

    /// Strings that must be written before or with the next packet.
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
