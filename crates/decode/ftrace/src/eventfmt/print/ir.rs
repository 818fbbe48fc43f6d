//! A compiled print fmt: an output tree with resolved field positions.

use std::sync::Arc;

use super::quick::Quick;
use crate::eventfmt::digits::{Radix, Shape};
use crate::eventfmt::number::{NumberAt, sign_extend, zero_extend};

/// The C type of a number once the size of `long` is known.
///
/// A value is stored in 64 bits, sign- or zero-extended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) size: u8,
    pub(super) signed: bool,
}

impl Kind {
    pub(super) const INT: Self = Self { size: 4, signed: true };
    pub(super) const UNSIGNED: Self = Self { size: 4, signed: false };
    pub(super) const U64: Self = Self { size: 8, signed: false };

    /// The value truncated to this type and extended again.
    #[inline]
    pub(super) fn fit(self, value: u64) -> u64 {
        if self.signed {
            sign_extend(value, self.size).cast_unsigned()
        } else {
            zero_extend(value, self.size)
        }
    }

    /// The type after C's integer promotion: at least `int`.
    pub(super) fn promoted(self) -> Self {
        if self.size < 4 { Self::INT } else { self }
    }

    /// The common type of two operands in C.
    pub(super) fn meet(self, other: Self) -> Self {
        let (lhs, right) = (self.promoted(), other.promoted());
        let signed = match lhs.size.cmp(&right.size) {
            std::cmp::Ordering::Less => right.signed,
            std::cmp::Ordering::Equal => lhs.signed && right.signed,
            std::cmp::Ordering::Greater => lhs.signed,
        };
        Self { size: lhs.size.max(right.size), signed }
    }
}

/// A number computed from a record.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Num {
    Const(u64),
    Field(NumberAt),
    /// An element of an array.
    Element(Box<Element>),
    /// Length in bytes of the data of a `__data_loc` field.
    Length(ByteRange),
    Not(Box<Num>),
    Binary(Box<Binary>),
    /// Condition, value if it holds, value if not.
    Choice(Box<[Num; 3]>),
    Cast(Box<Num>, Kind),
    /// Byte swap of a number with this size.
    Swap(Box<Num>, u8),
    /// Number of the lowest set bit, counted from 1; 0 if none is set.
    LowestBit(Box<Num>),
    /// Number of the highest set bit, counted from 1; 0 if none is set.
    HighestBit(Box<Num>),
}

/// An element of an array; the index counts elements.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Element {
    pub(super) place: ByteRange,
    pub(super) kind: Kind,
    pub(super) index: Num,
}

/// An operation on two numbers that already have type `kind`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Binary {
    pub(super) op: Op,
    pub(super) kind: Kind,
    pub(super) lhs: Num,
    pub(super) right: Num,
}

/// A binary operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    And,
    Or,
    Xor,
    Shl,
    Shr,
    Less,
    LessEqual,
    Equal,
    NotEqual,
    Both,
    Either,
}

/// The position of bytes in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ByteRange {
    /// In the record itself; a length of 0 means up to its end.
    Fixed { offset: u32, len: u32 },
    /// At the position in the word at `at`, relative to `base`.
    Located { at: u32, base: u32 },
}

/// A string derived from a record.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Text {
    Literal(Box<[u8]>),
    /// A NUL-terminated string in the record.
    Chars(ByteRange),
    /// A pointer to a kernel string, which only the recorded strings can resolve.
    Pointer(Num),
    Symbol(Box<Symbolic>),
    Flags(Box<Flags>),
    Hex(Box<HexBytes>),
    Array(Box<Array>),
    HexDump(Box<HexDump>),
    /// A bitmask as hex words, separated by commas.
    Mask(ByteRange),
    /// The numbers of the set bits, as ranges.
    List(ByteRange),
    Choice(Box<(Num, Text, Text)>),
    /// An element of a table of strings.
    Indexed(Arc<[Box<[u8]>]>, Num),
    /// The output of a block of statements.
    Printed(Box<[Piece]>),
}

/// `__print_symbolic`: a name for a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Symbolic {
    pub(super) value: Num,
    pub(super) kind: Kind,
    /// Sorted by value, without duplicates.
    pub(super) names: Box<[(u64, Box<[u8]>)]>,
    /// Indices in `names`, counted from 1, by value: most values are low, such as exit and
    /// interrupt numbers, and need no search.
    low: Box<[u16]>,
}

impl Symbolic {
    /// Upper bound of low values.
    const LOW: u64 = 1 << 12;

    /// The names must be sorted by value, without duplicates.
    pub(super) fn new(value: Num, kind: Kind, names: Box<[(u64, Box<[u8]>)]>) -> Self {
        let mut low = Vec::new();
        for (place, (value, _)) in (1..).zip(&names).take_while(|(_, entry)| entry.0 < Self::LOW) {
            low.resize(*value as usize, 0);
            low.push(place);
        }
        Self { value, kind, names, low: low.into() }
    }

    /// The name of `value`.
    pub(super) fn name(&self, value: u64) -> Option<&[u8]> {
        let low = usize::try_from(value).ok().and_then(|value| self.low.get(value));
        let at = match low {
            Some(&place) => usize::from(place).checked_sub(1)?,
            None => self.names.binary_search_by_key(&value, |entry| entry.0).ok()?,
        };
        self.names.get(at).map(|entry| &*entry.1)
    }
}

/// `__print_flags`: names of the bits of a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Flags {
    pub(super) value: Num,
    pub(super) kind: Kind,
    pub(super) delimiter: Box<[u8]>,
    pub(super) names: Box<[(u64, Box<[u8]>)]>,
}

/// `__print_hex` and its variants.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HexBytes {
    pub(super) place: ByteRange,
    pub(super) len: Num,
    pub(super) separator: Option<u8>,
}

/// `__print_array`; without a count, all elements.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Array {
    pub(super) place: ByteRange,
    pub(super) count: Option<Num>,
    pub(super) element: Num,
}

/// `__print_hex_dump`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HexDump {
    pub(super) prefix: Box<[u8]>,
    pub(super) offsets: bool,
    pub(super) row: Num,
    pub(super) group: Num,
    pub(super) place: ByteRange,
    pub(super) len: Num,
    pub(super) ascii: Num,
}

/// A part of the output.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Piece {
    Literal(Box<[u8]>),
    Conversion(Box<Conversion>),
}

/// A `%` conversion with its argument.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Conversion {
    pub(super) shape: Shape,
    /// A width or precision that comes from an argument.
    pub(super) width: Option<Num>,
    pub(super) precision: Option<Num>,
    /// No flag, width or precision.
    pub(super) plain: bool,
    pub(super) what: ConversionKind,
    /// The fast form, if there is one.
    pub(super) quick: Option<Quick>,
    /// Index of the event field if the argument is just that field.
    pub(super) field: Option<u32>,
}

/// The output of a conversion.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ConversionKind {
    Signed(Num, Kind),
    Unsigned(Num, Kind, Radix),
    Character(Num),
    Text(Text),
    Address(Num),
    /// `%pS`, or `%ps` without the offset.
    Function {
        address: Num,
        offset: bool,
    },
    Pointed(Pointed, ByteRange),
}

/// The output format of the bytes that a `%p` argument points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pointed {
    Ip4 { zeros: bool, reversed: bool },
    Ip6 { colons: bool, compressed: bool },
    Socket { port: bool, compressed: bool, zeros: bool },
    Mac { separator: Option<u8>, reversed: bool },
    Uuid { little: bool, upper: bool },
    Hex { separator: Option<u8> },
    Bits { list: bool },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_and_high_values_have_names() {
        let values = [0, 2, 71, 0x400, 0xfff, 0x1000, 0x1001, u64::MAX];
        let names = values.map(|value| (value, value.to_string().into_bytes().into())).into();
        let symbolic = Symbolic::new(Num::Const(0), Kind::U64, names);
        for value in (0..0x1010).chain([u64::MAX - 1, u64::MAX]) {
            let name = values.contains(&value).then(|| value.to_string());
            assert_eq!(symbolic.name(value), name.as_deref().map(str::as_bytes));
        }
    }
}
