//! The kernel's own names for values: the tables of `__print_symbolic` and `__print_flags`.

use super::eval::Record;
use super::ir::{ConversionKind, Flags, Num, Piece, Symbolic, Text};
use super::writer::Writer;
use super::{PrintContext, PrintProgram, texts};
use crate::eventfmt::format::EventFormat;
use crate::eventfmt::kallsyms::Kallsyms;
use crate::eventfmt::number::NumberAt;
use crate::eventfmt::printk_formats::PrintkFormats;

impl PrintProgram {
    /// The kernel's name for the value of `field` in `record`, from the first table over this field
    /// that the print fmt uses for this record.
    #[must_use]
    pub fn symbol_of(&self, format: &EventFormat, field: &str, record: &[u8]) -> Option<&[u8]> {
        let at = format.field(field)?.number()?;
        let record = Record::new(record, self.abi);
        let mut texts = self.texts();
        let table = texts.find_map(|text| match chosen(text, at, record) {
            Some(Table::Symbolic(table)) => Some(table),
            _ => None,
        })?;
        table.name(table.kind.fit(record.eval(&table.value).ok()?))
    }

    /// The flags in `field` of `record`, as the print fmt prints them, from the first table of
    /// flags over this field that it uses for this record. `None`: it uses none; empty: no flag is
    /// set.
    #[must_use]
    pub fn flags_of(&self, format: &EventFormat, field: &str, record: &[u8]) -> Option<String> {
        let at = format.field(field)?.number()?;
        let record = Record::new(record, self.abi);
        let mut texts = self.texts();
        let table = texts.find_map(|text| match chosen(text, at, record) {
            Some(Table::Flags(table)) => Some(table),
            _ => None,
        })?;
        let (kallsyms, printk) = (Kallsyms::default(), PrintkFormats::default());
        let context = PrintContext { kallsyms: &kallsyms, printk: &printk };
        let mut out = Vec::new();
        texts::flags(Writer { record, context }, table, &mut out).ok()?;
        Some(String::from_utf8_lossy(&out).into_owned())
    }

    /// All values of `field` with names in the print fmt, table by table.
    #[must_use]
    pub fn symbols_of(&self, format: &EventFormat, field: &str) -> Vec<(u64, &[u8])> {
        let Some(at) = format.field(field).and_then(crate::eventfmt::field::Field::number) else {
            return Vec::new();
        };
        let mut tables = Vec::new();
        self.texts().for_each(|text| collect(text, at, &mut tables));
        let entries = tables.into_iter().flat_map(|table| &table.names);
        entries.map(|(value, name)| (*value, &**name)).collect()
    }

    fn texts(&self) -> impl Iterator<Item = &Text> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Conversion(conversion) => match &conversion.what {
                ConversionKind::Text(text) => Some(text),
                _ => None,
            },
            Piece::Literal(_) => None,
        })
    }
}

/// A table with names.
#[derive(Clone, Copy)]
enum Table<'p> {
    Symbolic(&'p Symbolic),
    Flags(&'p Flags),
}

/// The table over the field at `at` that applies to `record`.
fn chosen<'p>(text: &'p Text, at: NumberAt, record: Record<'_>) -> Option<Table<'p>> {
    match text {
        Text::Symbol(table) if uses(&table.value, at) => Some(Table::Symbolic(table)),
        Text::Flags(table) if uses(&table.value, at) => Some(Table::Flags(table)),
        Text::Choice(parts) => {
            let (condition, yes, no) = &**parts;
            let holds = record.eval(condition).ok()? != 0;
            chosen(if holds { yes } else { no }, at, record)
        }
        _ => None,
    }
}

fn collect<'p>(text: &'p Text, at: NumberAt, tables: &mut Vec<&'p Symbolic>) {
    match text {
        Text::Symbol(table) if uses(&table.value, at) => tables.push(table),
        Text::Choice(parts) => {
            collect(&parts.1, at, tables);
            collect(&parts.2, at, tables);
        }
        _ => {}
    }
}

fn uses(num: &Num, at: NumberAt) -> bool {
    match num {
        Num::Field(field) => *field == at,
        Num::Const(_) | Num::Length(_) => false,
        Num::Element(element) => uses(&element.index, at),
        Num::Not(inner) | Num::LowestBit(inner) | Num::HighestBit(inner) => uses(inner, at),
        Num::Cast(inner, _) | Num::Swap(inner, _) => uses(inner, at),
        Num::Binary(binary) => uses(&binary.lhs, at) || uses(&binary.right, at),
        Num::Choice(parts) => parts.iter().any(|part| uses(part, at)),
    }
}
