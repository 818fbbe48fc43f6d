//! Strings that are written once and then called by a number.

use rustc_hash::FxHashMap;

use super::messages::{DebugAnnotation, InternedData, InternedName};
use crate::{Arg, Args};

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

impl Interned {
    pub(super) fn category(&mut self, text: &str) -> u64 {
        self.categories.of(text, &mut self.new.event_categories)
    }

    pub(super) fn name(&mut self, text: &str) -> u64 {
        self.names.of(text, &mut self.new.event_names)
    }

    pub(super) fn args(&mut self, args: &Args<'_>) -> Vec<DebugAnnotation> {
        args.iter().map(|(name, arg)| self.arg(name, arg)).collect()
    }

    fn arg(&mut self, name: &str, arg: &Arg<'_>) -> DebugAnnotation {
        let name_iid = Some(self.arg_names.of(name, &mut self.new.debug_annotation_names));
        let empty = DebugAnnotation { name_iid, ..DebugAnnotation::default() };
        match *arg {
            Arg::Number(number) => DebugAnnotation { uint_value: Some(number), ..empty },
            Arg::Signed(number) => DebugAnnotation { int_value: Some(number), ..empty },
            Arg::Bool(yes) => DebugAnnotation { bool_value: Some(yes), ..empty },
            Arg::Name(text) if self.texts.numbers.len() < MOST_TEXTS => {
                let number = self.texts.of(text, &mut self.new.debug_annotation_string_values);
                DebugAnnotation { string_value_iid: Some(number), ..empty }
            }
            Arg::Name(text) | Arg::Text(text) => {
                DebugAnnotation { string_value: Some(text.to_owned()), ..empty }
            }
        }
    }

    /// What has to be written before or with the next packet.
    pub(super) fn take_new(&mut self) -> Option<InternedData> {
        let new = std::mem::take(&mut self.new);
        (new != InternedData::default()).then_some(new)
    }
}
