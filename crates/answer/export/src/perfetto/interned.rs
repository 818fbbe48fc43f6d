//! Strings that are written once and then called by a number.

use rustc_hash::FxHashMap;

use super::messages::{InternedData, InternedName};
use crate::Arg;

/// Numbers of strings of one kind.
#[derive(Debug, Default)]
struct Table {
    numbers: FxHashMap<String, u64>,
}

impl Table {
    /// The string's number; one not written yet goes to `new`.
    fn of(&mut self, text: &str, new: &mut Vec<InternedName>) -> u64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        // 0 stands for none.
        let number = self.numbers.len() as u64 + 1;
        self.numbers.insert(text.to_owned(), number);
        new.push(InternedName { iid: Some(number), name: Some(text.to_owned()) });
        number
    }
}

/// Texts kept by number, at most: of a damaged recording each could be another.
const MOST_TEXTS: usize = 1 << 20;

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
        self.categories.of(text, &mut self.new.event_categories)
    }

    pub(super) fn name(&mut self, text: &str) -> u64 {
        self.names.of(text, &mut self.new.event_names)
    }

    /// A value, its name and its text by number where they have one.
    pub(super) fn annotation<'a>(&mut self, name: &str, arg: &Arg<'a>) -> Annotation<'a> {
        let name = self.arg_names.of(name, &mut self.new.debug_annotation_names);
        match *arg {
            Arg::Number(number) => Annotation::Unsigned(name, number),
            Arg::Signed(number) => Annotation::Signed(name, number),
            Arg::Bool(yes) => Annotation::Bool(name, yes),
            Arg::Name(text) if self.texts.numbers.len() < MOST_TEXTS => {
                let new = &mut self.new.debug_annotation_string_values;
                Annotation::Interned(name, self.texts.of(text, new))
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
