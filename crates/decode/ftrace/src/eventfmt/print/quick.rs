//! A fast path for the most frequent conversions: a field as a plain decimal number, or as
//! zero-padded hex.

use super::eval::Record;
use super::ir::{ConversionKind, Kind, Num};
use crate::eventfmt::digits::{self, Radix, Shape};
use crate::eventfmt::number::NumberAt;

/// A conversion whose only argument is a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Quick {
    at: NumberAt,
    kind: Kind,
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    /// With at least this many characters, including a minus sign.
    Decimal(u8),
    /// With at least this many digits.
    Hex(u8),
}

impl Quick {
    /// The fast form of a conversion, if it has one. Its width and precision are fixed.
    pub(super) fn from_conversion(what: &ConversionKind, shape: Shape) -> Option<Self> {
        let (ConversionKind::Signed(Num::Field(at), kind)
        | ConversionKind::Unsigned(Num::Field(at), kind, _)) = *what
        else {
            return None;
        };
        let zeros = Shape { zero: true, width: shape.width, ..Shape::default() };
        let form = match what {
            ConversionKind::Unsigned(_, _, Radix::Hex) if shape == Shape::default() => Form::Hex(1),
            ConversionKind::Unsigned(_, _, Radix::Hex) if shape == zeros => {
                Form::Hex(u8::try_from(shape.width).ok().filter(|&width| width <= 16)?)
            }
            ConversionKind::Unsigned(_, _, Radix::Decimal) | ConversionKind::Signed(..)
                if shape == Shape::default() =>
            {
                Form::Decimal(1)
            }
            ConversionKind::Unsigned(_, _, Radix::Decimal) | ConversionKind::Signed(..)
                if shape == zeros =>
            {
                Form::Decimal(u8::try_from(shape.width).ok().filter(|&width| width <= 8)?)
            }
            _ => return None,
        };
        Some(Self { at, kind, form })
    }

    /// Appends the number; `None` if the record is too short.
    #[inline]
    pub(super) fn write(&self, record: Record<'_>, out: &mut Vec<u8>) -> Option<()> {
        let value = self.at.read_signed(record.bytes, record.order)?.cast_unsigned();
        let value = self.kind.fit(value);
        match self.form {
            Form::Hex(min) => digits::hex(out, value, usize::from(min)),
            Form::Decimal(min) if self.kind.signed && value.cast_signed() < 0 => {
                out.push(b'-');
                let min = usize::from(min).saturating_sub(1);
                digits::decimal_of(out, value.wrapping_neg(), min);
            }
            Form::Decimal(min) => digits::decimal_of(out, value, usize::from(min)),
        }
        Some(())
    }
}
