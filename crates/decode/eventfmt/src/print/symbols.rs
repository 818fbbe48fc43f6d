//! The kernel's own names for values: the tables of `__print_symbolic`.

use super::PrintProgram;
use super::eval::Record;
use super::ir::{ConversionKind, Num, Piece, Symbolic, Text};
use crate::format::EventFormat;
use crate::number::NumberAt;

impl PrintProgram {
    /// The kernel's name for what `field` holds in `record`: that of the first table over the
    /// field that the print fmt would use for this record.
    #[must_use]
    pub fn symbol_of(&self, format: &EventFormat, field: &str, record: &[u8]) -> Option<&[u8]> {
        let at = format.field(field)?.number()?;
        let record = Record::new(record, self.abi);
        let mut texts = self.texts();
        let table = texts.find_map(|text| chosen(text, at, record))?;
        table.name(table.kind.fit(record.eval(&table.value).ok()?))
    }

    /// All values of `field` that the print fmt has names for, table by table.
    #[must_use]
    pub fn symbols_of(&self, format: &EventFormat, field: &str) -> Vec<(u64, &[u8])> {
        let Some(at) = format.field(field).and_then(crate::field::Field::number) else {
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

/// The table over the field at `at` that `record` chooses.
fn chosen<'p>(text: &'p Text, at: NumberAt, record: Record<'_>) -> Option<&'p Symbolic> {
    match text {
        Text::Symbol(table) if uses(&table.value, at) => Some(table),
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
        Num::Binary(binary) => uses(&binary.left, at) || uses(&binary.right, at),
        Num::Choice(parts) => parts.iter().any(|part| uses(part, at)),
    }
}
