//! Evaluates the numbers of a print fmt for a record.

use raw_bytes::{Abi, ByteOrder, LongSize};

use super::ir::{Binary, ByteRange, Element, Kind, Num, Op};
use crate::eventfmt::error::WriteError;
use crate::eventfmt::field::located;
use crate::eventfmt::number::NumberAt;

/// A record and the ABI to read it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<'r> {
    pub(super) bytes: &'r [u8],
    pub(super) order: ByteOrder,
    pub(super) long: LongSize,
}

impl<'r> Record<'r> {
    pub(super) fn new(bytes: &'r [u8], abi: Abi) -> Self {
        Self { bytes, order: abi.order, long: abi.long }
    }

    /// The bytes at a position.
    #[inline]
    pub(super) fn at(self, place: ByteRange) -> Result<&'r [u8], WriteError> {
        let bytes = match place {
            ByteRange::Fixed { offset, len: 0 } => self.bytes.get(offset as usize..),
            ByteRange::Fixed { offset, len } => {
                self.bytes.get(offset as usize..offset.saturating_add(len) as usize)
            }
            ByteRange::Located { at, base } => located(self.bytes, self.order, at, base),
        };
        bytes.ok_or(WriteError::Short)
    }

    /// The first `len` bytes at a position, even past the field's end if the record has them.
    pub(super) fn first(self, place: ByteRange, len: usize) -> Result<&'r [u8], WriteError> {
        let bytes = match place {
            ByteRange::Fixed { offset, .. } => {
                self.bytes.get(offset as usize..).ok_or(WriteError::Short)?
            }
            ByteRange::Located { .. } => self.at(place)?,
        };
        bytes.get(..len).ok_or(WriteError::Short)
    }

    #[inline]
    fn number(self, at: NumberAt) -> Result<u64, WriteError> {
        at.read_signed(self.bytes, self.order).map(i64::cast_unsigned).ok_or(WriteError::Short)
    }

    fn element(self, element: &Element) -> Result<u64, WriteError> {
        let index = usize::try_from(self.eval(&element.index)?).map_err(|_| WriteError::Short)?;
        let size = usize::from(element.kind.size);
        let start = index.checked_mul(size).ok_or(WriteError::Short)?;
        let bytes = self.at(element.place)?;
        let raw = self.order.uint_at(bytes, start, size).ok_or(WriteError::Short)?;
        Ok(element.kind.fit(raw))
    }

    /// The value of `num`.
    #[inline]
    pub(super) fn eval(self, num: &Num) -> Result<u64, WriteError> {
        // Most arguments are fields, which need no recursive call.
        if let Num::Field(at) = num { self.number(*at) } else { self.compute(num) }
    }

    fn compute(self, num: &Num) -> Result<u64, WriteError> {
        Ok(match num {
            Num::Const(value) => *value,
            Num::Field(at) => self.number(*at)?,
            Num::Element(element) => self.element(element)?,
            Num::Length(place) => self.at(*place)?.len() as u64,
            Num::Not(inner) => u64::from(self.eval(inner)? == 0),
            Num::Binary(binary) => self.binary(binary)?,
            Num::Choice(parts) => {
                let [condition, yes, no] = &**parts;
                if self.eval(condition)? == 0 { self.eval(no)? } else { self.eval(yes)? }
            }
            Num::Cast(inner, kind) => kind.fit(self.eval(inner)?),
            Num::Swap(inner, size) => swapped(self.eval(inner)?, *size),
            Num::LowestBit(inner) => match self.eval(inner)? {
                0 => 0,
                value => u64::from(value.trailing_zeros().wrapping_add(1)),
            },
            Num::HighestBit(inner) => {
                u64::from(64u32.wrapping_sub(self.eval(inner)?.leading_zeros()))
            }
        })
    }

    fn binary(self, binary: &Binary) -> Result<u64, WriteError> {
        let lhs = self.eval(&binary.lhs)?;
        match (binary.op, lhs) {
            (Op::Both, 0) => return Ok(0),
            (Op::Either, 1..) => return Ok(1),
            _ => {}
        }
        operate(binary.op, binary.kind, lhs, self.eval(&binary.right)?)
    }
}

fn swapped(value: u64, size: u8) -> u64 {
    let unused = 64u32.saturating_sub(u32::from(size).saturating_mul(8));
    value.swap_bytes().checked_shr(unused).unwrap_or(0)
}

/// Computes in type `kind`, with wrap-around as in the kernel.
fn operate(op: Op, kind: Kind, lhs: u64, right: u64) -> Result<u64, WriteError> {
    let bits = u32::from(kind.size).wrapping_mul(8);
    // A shift by the width or more is undefined in C; machines use the count modulo the width.
    let count = (right as u32).checked_rem(bits).unwrap_or(0);
    let value = match op {
        Op::Add => lhs.wrapping_add(right),
        Op::Sub => lhs.wrapping_sub(right),
        Op::Mul => lhs.wrapping_mul(right),
        Op::Div | Op::Rem => return divide(op, kind, lhs, right),
        Op::And => lhs & right,
        Op::Or => lhs | right,
        Op::Xor => lhs ^ right,
        Op::Shl => lhs.wrapping_shl(count),
        Op::Shr if kind.signed => lhs.cast_signed().wrapping_shr(count).cast_unsigned(),
        Op::Shr => lhs.wrapping_shr(count),
        Op::Less if kind.signed => return Ok((lhs.cast_signed() < right.cast_signed()).into()),
        Op::LessEqual if kind.signed => {
            return Ok((lhs.cast_signed() <= right.cast_signed()).into());
        }
        Op::Less => return Ok((lhs < right).into()),
        Op::LessEqual => return Ok((lhs <= right).into()),
        Op::Equal => return Ok((lhs == right).into()),
        Op::NotEqual => return Ok((lhs != right).into()),
        Op::Both | Op::Either => return Ok((right != 0).into()),
    };
    Ok(kind.fit(value))
}

/// Divides as C does, rounding towards zero; the minimum divided by -1 wraps.
fn divide(op: Op, kind: Kind, lhs: u64, right: u64) -> Result<u64, WriteError> {
    let (dividend, divisor) = (lhs.cast_signed(), right.cast_signed());
    let value = match (op, kind.signed) {
        (Op::Div, true) if divisor == -1 => Some(lhs.wrapping_neg()),
        (_, true) if divisor == -1 => Some(0),
        (Op::Div, true) => dividend.checked_div(divisor).map(i64::cast_unsigned),
        (Op::Div, false) => lhs.checked_div(right),
        (_, true) => dividend.checked_rem(divisor).map(i64::cast_unsigned),
        (_, false) => lhs.checked_rem(right),
    };
    value.map(|value| kind.fit(value)).ok_or(WriteError::DivisionByZero)
}
