//! Prints fields as `name=value`, in the format of the print fmt.

use super::eval::Record;
use super::ir::{Conversion, Piece};
use super::writer::Writer;
use super::{PrintContext, PrintProgram};
use crate::eventfmt::field::{Field, FieldKind};
use crate::eventfmt::format::EventFormat;
use crate::eventfmt::raw;

impl PrintProgram {
    /// Appends ` name=value` for every event field, as `trace-cmd report -R` does: a number that
    /// the print fmt shows by itself keeps that format, other fields use
    /// [`write_raw`](crate::eventfmt::write_raw).
    pub fn write_fields(
        &self,
        format: &EventFormat,
        record: &[u8],
        context: &PrintContext<'_>,
        out: &mut Vec<u8>,
    ) {
        let order = self.abi.order;
        let writer = Writer { record: Record::new(record, self.abi), context: *context };
        // The search for a field starts after the previous match, and wraps around; after a match
        // of the last piece, the search stops.
        let mut from = Some(0usize).filter(|_| !self.pieces.is_empty());
        for (index, field) in format.fields().iter().enumerate() {
            raw::write_name(field, out);
            let start = out.len();
            let found = from.filter(|_| is_number(field)).and_then(|from| self.shown(index, from));
            let Some((at, conversion, hex)) = found else {
                raw::write_field(field, record, order, out);
                continue;
            };
            if hex {
                out.extend_from_slice(b"0x");
            }
            if writer.conversion(conversion, out).is_err() {
                out.truncate(start);
            }
            from = Some(at.saturating_add(1)).filter(|&next| next < self.pieces.len());
        }
    }

    /// The conversion of field `index`: its position, and whether `0x` precedes it.
    fn shown(&self, index: usize, from: usize) -> Option<(usize, &Conversion, bool)> {
        let count = self.pieces.len();
        let mut hex = false;
        for at in (from..count).chain(0..from) {
            match self.pieces.get(at)? {
                Piece::Literal(text) => hex = text.ends_with(b"0x"),
                Piece::Conversion(conversion) => {
                    if conversion.field.is_some_and(|field| field as usize == index) {
                        return Some((at, conversion, hex));
                    }
                    hex = false;
                }
            }
        }
        None
    }
}

fn is_number(field: &Field) -> bool {
    matches!(field.kind, FieldKind::Number(_))
}
