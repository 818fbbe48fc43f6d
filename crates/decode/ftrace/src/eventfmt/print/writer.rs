//! Prints a record with a compiled print fmt.

use super::PrintContext;
use super::eval::Record;
use super::ir::{Conversion, ConversionKind, Kind, Num, Piece, Pointed, Text};
use super::{masks, pointer, texts};
use crate::eventfmt::digits::{self, Radix, Shape};
use crate::eventfmt::error::WriteError;
use crate::eventfmt::field::append_until_nul;

/// A record that is being printed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Writer<'r> {
    pub(super) record: Record<'r>,
    pub(super) context: PrintContext<'r>,
}

impl Writer<'_> {
    pub(super) fn pieces(self, pieces: &[Piece], out: &mut Vec<u8>) -> Result<(), WriteError> {
        for piece in pieces {
            match piece {
                Piece::Literal(text) => out.extend_from_slice(text),
                Piece::Conversion(conversion) => match &conversion.quick {
                    Some(quick) => quick.write(self.record, out).ok_or(WriteError::Short)?,
                    None => self.conversion(conversion, out)?,
                },
            }
        }
        Ok(())
    }

    pub(super) fn conversion(
        self,
        conversion: &Conversion,
        out: &mut Vec<u8>,
    ) -> Result<(), WriteError> {
        if conversion.plain {
            return self.plain(&conversion.what, out);
        }
        let shape = self.shape(conversion)?;
        match &conversion.what {
            ConversionKind::Signed(num, kind) => {
                let value = kind.fit(self.record.eval(num)?);
                digits::signed(out, value.cast_signed(), shape);
            }
            ConversionKind::Unsigned(num, kind, radix) => {
                digits::unsigned(out, kind.fit(self.record.eval(num)?), *radix, shape);
            }
            ConversionKind::Pointed(pointed, place) => {
                let width = shape.width;
                self.pointed(*pointed, *place, width, out)?;
            }
            what => {
                let start = out.len();
                self.plain(what, out)?;
                digits::pad_text(out, start, shape);
            }
        }
        Ok(())
    }

    /// The shape with widths and precisions from arguments.
    fn shape(self, conversion: &Conversion) -> Result<Shape, WriteError> {
        let mut shape = conversion.shape;
        if let Some(width) = &conversion.width {
            let width = self.record.eval(width)?.cast_signed();
            shape.minus |= width < 0;
            shape.width = usize::try_from(width.unsigned_abs()).unwrap_or(usize::MAX);
        }
        if let Some(precision) = &conversion.precision {
            // C ignores a negative precision.
            shape.precision = usize::try_from(self.record.eval(precision)?.cast_signed()).ok();
        }
        Ok(shape)
    }

    fn plain(self, what: &ConversionKind, out: &mut Vec<u8>) -> Result<(), WriteError> {
        match what {
            ConversionKind::Signed(num, kind) => {
                let value = kind.fit(self.record.eval(num)?).cast_signed();
                if value < 0 {
                    out.push(b'-');
                }
                digits::plain(out, value.unsigned_abs(), Radix::Decimal);
            }
            ConversionKind::Unsigned(num, kind, radix) => {
                digits::plain(out, kind.fit(self.record.eval(num)?), *radix);
            }
            ConversionKind::Character(num) => out.extend(self.character(num)?),
            ConversionKind::Text(text) => self.text(text, out)?,
            ConversionKind::Address(num) => match self.record.eval(num)? {
                0 => out.extend_from_slice(b"(nil)"),
                address => digits::address(out, address),
            },
            ConversionKind::Function { address, offset } => self.function(address, *offset, out)?,
            ConversionKind::Pointed(pointed, place) => self.pointed(*pointed, *place, 0, out)?,
        }
        Ok(())
    }

    /// A character; NUL ends a C string and prints nothing.
    fn character(self, num: &Num) -> Result<Option<u8>, WriteError> {
        let byte = Kind { size: 1, signed: false }.fit(self.record.eval(num)?) as u8;
        Ok((byte != 0).then_some(byte))
    }

    fn function(self, address: &Num, offset: bool, out: &mut Vec<u8>) -> Result<(), WriteError> {
        let address = self.record.eval(address)?;
        let Some(symbol) = self.context.kallsyms.lookup(address) else {
            digits::address(out, address);
            return Ok(());
        };
        out.extend_from_slice(symbol.name);
        if offset {
            out.push(b'+');
            digits::address(out, symbol.offset);
        }
        Ok(())
    }

    fn pointed(
        self,
        pointed: Pointed,
        place: super::ir::ByteRange,
        width: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), WriteError> {
        let have = self.record.at(place)?;
        match pointed {
            Pointed::Bits { list: true } => masks::list(out, self.record, have, width),
            Pointed::Bits { list: false } => masks::words(out, self.record, have, width),
            Pointed::Hex { .. } => {
                let size = pointer::size(pointed, width, have.len()).min(have.len());
                pointer::write(out, pointed, have.get(..size).unwrap_or(have));
            }
            _ => {
                let bytes = have.get(..pointer::size(pointed, width, have.len()));
                pointer::write(out, pointed, bytes.ok_or(WriteError::Short)?);
            }
        }
        Ok(())
    }

    /// Appends a string.
    pub(super) fn text(self, text: &Text, out: &mut Vec<u8>) -> Result<(), WriteError> {
        match text {
            Text::Literal(literal) => out.extend_from_slice(literal),
            Text::Chars(place) => append_until_nul(self.record.at(*place)?, out),
            Text::Pointer(num) => {
                let address = self.record.eval(num)?;
                match self.context.printk.get(address) {
                    Some(string) => out.extend_from_slice(string),
                    None => digits::plain(out, address, Radix::Hex),
                }
            }
            Text::Symbol(symbolic) => {
                let value = symbolic.kind.fit(self.record.eval(&symbolic.value)?);
                match symbolic.name(value) {
                    Some(name) => out.extend_from_slice(name),
                    None => digits::address(out, value),
                }
            }
            Text::Choice(parts) => {
                let (condition, yes, no) = &**parts;
                let holds = self.record.eval(condition)? != 0;
                self.text(if holds { yes } else { no }, out)?;
            }
            Text::Indexed(strings, index) => {
                let index = usize::try_from(self.record.eval(index)?).ok();
                let string = index.and_then(|index| strings.get(index));
                out.extend_from_slice(string.ok_or(WriteError::Short)?);
            }
            Text::Printed(pieces) => self.pieces(pieces, out)?,
            Text::Flags(flags) => texts::flags(self, flags, out)?,
            Text::Hex(hex) => texts::hex(self, hex, out)?,
            Text::Array(array) => texts::array(self, array, out)?,
            Text::HexDump(dump) => texts::hex_dump(self, dump, out)?,
            Text::Mask(place) => {
                let bytes = self.record.at(*place)?;
                masks::words(out, self.record, bytes, bytes.len().saturating_mul(8));
            }
            Text::List(place) => {
                let bytes = self.record.at(*place)?;
                masks::list(out, self.record, bytes, bytes.len().saturating_mul(8));
            }
        }
        Ok(())
    }
}
