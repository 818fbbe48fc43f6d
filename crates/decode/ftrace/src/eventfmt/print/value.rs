//! Builds numbers during parsing: C's conversions and constant folding.

use raw_bytes::{Abi, ByteOrder, LongSize};

use super::eval::Record;
use super::ir::{Binary, ByteRange, Kind, Num, Op};
use crate::eventfmt::ctype::CType;
use crate::eventfmt::error::PrintError;

/// Maximum depth, so that evaluation cannot exhaust the stack.
const MAX_DEPTH: u16 = 128;

/// A number with its C type.
#[derive(Clone, Debug)]
pub(super) struct Typed {
    pub(super) num: Num,
    pub(super) kind: Kind,
    /// Height of the tree, which bounds recursion.
    pub(super) depth: u16,
    /// Index and position of the event field, if the number is just that field.
    pub(super) field: Option<(u32, ByteRange)>,
}

impl Typed {
    pub(super) fn constant(value: u64, kind: Kind) -> Self {
        Self { num: Num::Const(kind.fit(value)), kind, depth: 0, field: None }
    }

    pub(super) fn leaf(num: Num, kind: Kind) -> Self {
        Self { num, kind, depth: 0, field: None }
    }

    /// A node above children of at most `depth`; constants are folded.
    pub(super) fn node(num: Num, kind: Kind, depth: u16) -> Result<Self, PrintError> {
        if depth >= MAX_DEPTH {
            return Err(PrintError::TooDeep);
        }
        let abi = Abi { order: ByteOrder::Little, long: LongSize::Eight };
        let nothing = Record::new(&[], abi);
        // Evaluation with an empty record fails for everything that reads the record.
        let num = nothing.eval(&num).map_or(num, Num::Const);
        let depth = if matches!(num, Num::Const(_)) { 0 } else { depth.saturating_add(1) };
        Ok(Self { num, kind, depth, field: None })
    }

    /// The number converted to `kind`.
    pub(super) fn cast(self, kind: Kind) -> Result<Self, PrintError> {
        let field = self.field;
        let holds_all = kind.size > self.kind.size && (kind.signed || !self.kind.signed);
        // Values are stored in 64 bits, so this conversion does not change them.
        if kind == self.kind || holds_all || kind.size == 8 {
            return Ok(Self { kind, ..self });
        }
        let node = Self::node(Num::Cast(Box::new(self.num), kind), kind, self.depth)?;
        Ok(Self { field, ..node })
    }

    pub(super) fn not(self) -> Result<Self, PrintError> {
        Self::node(Num::Not(Box::new(self.num)), Kind::INT, self.depth)
    }

    /// Applies a unary operator in the promoted type.
    pub(super) fn unary(self, op: Op, lhs: u64) -> Result<Self, PrintError> {
        let kind = self.kind.promoted();
        Self::binary(op, Self::constant(lhs, kind), self)
    }

    /// Applies an operator to two numbers after C's usual conversions.
    pub(super) fn binary(op: Op, lhs: Self, right: Self) -> Result<Self, PrintError> {
        let depth = lhs.depth.max(right.depth);
        let (kind, result) = match op {
            Op::Shl | Op::Shr => (lhs.kind.promoted(), lhs.kind.promoted()),
            Op::Both | Op::Either => (Kind::INT, Kind::INT),
            Op::Less | Op::LessEqual | Op::Equal | Op::NotEqual => {
                (lhs.kind.meet(right.kind), Kind::INT)
            }
            _ => (lhs.kind.meet(right.kind), lhs.kind.meet(right.kind)),
        };
        let (lhs, right) = match op {
            Op::Both | Op::Either => (lhs, right),
            Op::Shl | Op::Shr => (lhs.cast(kind)?, right),
            _ => (lhs.cast(kind)?, right.cast(kind)?),
        };
        let binary = Binary { op, kind, lhs: lhs.num, right: right.num };
        let depth = depth.max(lhs.depth).max(right.depth);
        Self::node(Num::Binary(Box::new(binary)), result, depth)
    }

    /// `self ? yes : no`.
    pub(super) fn choice(self, yes: Self, no: Self) -> Result<Self, PrintError> {
        let kind = yes.kind.meet(no.kind);
        let (yes, no) = (yes.cast(kind)?, no.cast(kind)?);
        let depth = self.depth.max(yes.depth).max(no.depth);
        Self::node(Num::Choice(Box::new([self.num, yes.num, no.num])), kind, depth)
    }
}

/// The [`Kind`] of a C type on a machine with this `long`.
pub(super) fn kind(ctype: CType, long: LongSize) -> Kind {
    Kind { size: ctype.size_in(long), signed: ctype.signed }
}

/// A number literal with its C type.
pub(super) fn literal(text: &str, long: LongSize) -> Option<Typed> {
    let value = crate::eventfmt::text::number(text)?;
    let digits = text.trim_end_matches(['u', 'U', 'l', 'L']);
    let suffix = text.get(digits.len()..).unwrap_or("").to_ascii_lowercase();
    let decimal = !digits.starts_with('0');
    let unsigned = suffix.contains('u');
    let long = kind(CType::long(true), long);
    let least = match suffix.matches('l').count() {
        0 => Kind::INT,
        1 => long,
        _ => Kind { size: 8, signed: true },
    };
    for size in [4, 8] {
        for signed in [true, false] {
            let kind = Kind { size, signed };
            let allowed = if signed { !unsigned } else { unsigned || !decimal || size == 8 };
            if size >= least.size && allowed && holds(kind, value) {
                return Some(Typed::constant(value, kind));
            }
        }
    }
    None
}

fn holds(kind: Kind, value: u64) -> bool {
    let bits = u32::from(kind.size).saturating_mul(8).saturating_sub(u32::from(kind.signed));
    value.checked_shr(bits).unwrap_or(0) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind_of(text: &str) -> Kind {
        literal(text, LongSize::Eight).unwrap().kind
    }

    #[test]
    fn literals_have_the_types_of_c() {
        assert_eq!(kind_of("1"), Kind::INT);
        assert_eq!(kind_of("0xffffffff"), Kind::UNSIGNED);
        assert_eq!(kind_of("4294967295"), Kind { size: 8, signed: true });
        assert_eq!(kind_of("1UL"), Kind::U64);
        assert_eq!(kind_of("0xffffffffffffffff"), Kind::U64);
        assert_eq!(literal("1L", LongSize::Four).unwrap().kind, Kind::INT);
    }

    fn computed(op: Op, lhs: Typed, right: Typed) -> (u64, Kind) {
        let result = Typed::binary(op, lhs, right).unwrap();
        let Num::Const(value) = result.num else { panic!("not folded: {result:?}") };
        (value, result.kind)
    }

    #[test]
    fn operators_follow_the_usual_conversions() {
        let int = |value: i64| Typed::constant(value.cast_unsigned(), Kind::INT);
        let unsigned = |value| Typed::constant(value, Kind::UNSIGNED);
        assert_eq!(computed(Op::Less, int(-1), int(0)), (1, Kind::INT));
        assert_eq!(computed(Op::Less, int(-1), unsigned(0)), (0, Kind::INT));
        assert_eq!(computed(Op::Sub, unsigned(0), unsigned(1)), (0xffff_ffff, Kind::UNSIGNED));
        assert_eq!(computed(Op::Div, int(-7), int(2)).0, (-3i64).cast_unsigned());
        assert_eq!(computed(Op::Shr, int(-8), int(1)).0, (-4i64).cast_unsigned());
        assert_eq!(computed(Op::Shl, int(1), int(31)).0, i64::from(i32::MIN).cast_unsigned());
    }

    #[test]
    fn division_by_a_constant_zero_stays_unfolded() {
        let zero = Typed::constant(0, Kind::INT);
        let quotient = Typed::binary(Op::Div, Typed::constant(1, Kind::INT), zero).unwrap();
        assert!(matches!(quotient.num, Num::Binary(_)));
    }
}
