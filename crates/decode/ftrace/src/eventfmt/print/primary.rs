//! Primary expressions: literals, fields, constants and calls.

use super::ir::{Kind, Num, Op, Text};
use super::lexer::TokenKind;
use super::parser::{Operand, Parser};
use super::value::{self, Typed};
use crate::eventfmt::ctype::{self, CType};
use crate::eventfmt::error::PrintError;

impl Parser<'_> {
    pub(super) fn primary(&mut self) -> Result<Operand, PrintError> {
        match self.peek() {
            Some(TokenKind::Text(_)) => Ok(Operand::Text(Text::Literal(self.literal()?))),
            Some(&TokenKind::Character(byte)) => {
                self.advance();
                Ok(Operand::Number(Typed::constant(u64::from(byte), Kind::INT)))
            }
            Some(&TokenKind::Number(text)) => {
                let number = value::literal(text, self.long());
                let number = number.ok_or_else(|| self.unexpected("a number"))?;
                self.advance();
                Ok(Operand::Number(number))
            }
            Some(TokenKind::Mark("(")) => {
                self.advance();
                if self.at_mark("{") {
                    return self.nested(Self::block);
                }
                if self.peek_at(1) == Some(&TokenKind::Mark(")"))
                    && self.peek() == Some(&TokenKind::Word("REC"))
                {
                    self.advance();
                    self.advance();
                    return self.named("REC");
                }
                let inner = self.expression()?;
                self.expect(")")?;
                Ok(inner)
            }
            Some(&TokenKind::Word(word)) => {
                self.advance();
                self.named(word)
            }
            _ => Err(self.unexpected("an operand")),
        }
    }

    fn named(&mut self, word: &str) -> Result<Operand, PrintError> {
        if word == "REC" || word == "__entry" {
            self.expect("->")?;
            let name = self.word()?;
            return self.record_field(name);
        }
        if self.take("(") {
            return self.nested(|parser| parser.call(word));
        }
        if let Some(local) = self.local(word)? {
            return Ok(local);
        }
        let constant = super::constants::value(word);
        let constant = constant.ok_or_else(|| PrintError::unsupported("the constant", word))?;
        Ok(Operand::Number(Typed::constant(constant.cast_unsigned(), Kind::INT)))
    }

    /// A call after its opening bracket.
    fn call(&mut self, name: &str) -> Result<Operand, PrintError> {
        if let Some(text) = self.text_call(name)? {
            self.expect(")")?;
            return Ok(Operand::Text(text));
        }
        let result = match name {
            "__get_dynamic_array"
            | "__get_rel_dynamic_array"
            | "__get_sockaddr"
            | "__get_rel_sockaddr"
            | "__get_stacktrace"
            | "__get_rel_stacktrace" => Operand::Bytes(self.dynamic_field()?),
            "__get_dynamic_array_len" | "__get_rel_dynamic_array_len" => {
                let bytes = self.dynamic_field()?;
                Operand::Number(Typed::leaf(Num::Length(bytes.place), Kind::INT))
            }
            "sizeof" => Operand::Number(self.size_of()?),
            _ => Operand::Number(self.arithmetic_call(name)?),
        };
        self.expect(")")?;
        Ok(result)
    }

    /// The position of a field that is named without `REC->`.
    pub(super) fn dynamic_field(&mut self) -> Result<super::parser::Bytes, PrintError> {
        let name = self.word()?;
        let field = self.format.field(name);
        let field = field.ok_or_else(|| PrintError::UnknownField(name.to_owned()))?;
        Ok(self.bytes_of(field))
    }

    fn size_of(&mut self) -> Result<Typed, PrintError> {
        let size = match self.peek() {
            Some(TokenKind::Word(word)) if ctype::begins_type(word) => {
                let name = self.type_name()?;
                let ctype = ctype::named(&name);
                let ctype = ctype.ok_or_else(|| PrintError::unsupported("the type", name))?;
                u64::from(ctype.size_in(self.long()))
            }
            _ => match self.expression()? {
                Operand::Number(number) => u64::from(number.kind.size),
                Operand::Bytes(bytes) => match bytes.place {
                    super::ir::ByteRange::Fixed { len, .. } => u64::from(len),
                    super::ir::ByteRange::Located { .. } => self.long().bytes() as u64,
                },
                _ => return Err(PrintError::unsupported("the function", "sizeof of a string")),
            },
        };
        Ok(Typed::constant(size, self.kind(CType::long(false))))
    }

    /// Functions from numbers to numbers.
    fn arithmetic_call(&mut self, name: &str) -> Result<Typed, PrintError> {
        let first = self.number()?;
        match name {
            "likely" | "unlikely" | "READ_ONCE" => Ok(first),
            "__builtin_expect" => {
                self.second()?;
                Ok(first)
            }
            "min" | "max" => {
                let second = self.second()?;
                let less = Typed::binary(Op::Less, first.clone(), second.clone())?;
                if name == "min" { less.choice(first, second) } else { less.choice(second, first) }
            }
            "abs" => {
                let zero = Typed::constant(0, first.kind);
                let negative = Typed::binary(Op::Less, first.clone(), zero)?;
                negative.choice(first.clone().unary(Op::Sub, 0)?, first)
            }
            "MAJOR" => Typed::binary(Op::Shr, first, Typed::constant(20, Kind::INT)),
            "MINOR" => Typed::binary(Op::And, first, Typed::constant(0xf_ffff, Kind::UNSIGNED)),
            "BIT" | "BIT_ULL" => {
                let long = if name == "BIT" { CType::long(false) } else { CType::new(8, false) };
                Typed::binary(Op::Shl, Typed::constant(1, self.kind(long)), first)
            }
            "__print_ns_to_secs" => seconds(Op::Div, first),
            "__print_ns_without_secs" => seconds(Op::Rem, first)?.cast(Kind::UNSIGNED),
            _ => self.bit_call(name, first),
        }
    }

    fn second(&mut self) -> Result<Typed, PrintError> {
        self.expect(",")?;
        self.number()
    }

    /// Functions on the bits and bytes of a number.
    fn bit_call(&self, name: &str, number: Typed) -> Result<Typed, PrintError> {
        let (depth, from) = (number.depth, number.kind);
        if let Some((size, always)) = byte_order_call(name) {
            let kind = Kind { size, signed: false };
            let number = number.cast(kind)?;
            let little = self.abi.order == raw_bytes::ByteOrder::Little;
            let big_named = name.contains("be") || name.contains("ton") || name.contains("toh");
            if always || little == big_named {
                return Typed::node(Num::Swap(Box::new(number.num), size), kind, depth);
            }
            return Ok(number);
        }
        // Sign-extension bits of a negative `int` are not part of the number.
        let number = number.cast(Kind { signed: false, ..from.promoted() })?;
        let const_one = Typed::constant(1, Kind::INT);
        let lowest = |number: Typed| {
            Typed::node(Num::LowestBit(Box::new(number.num)), Kind::INT, number.depth)
        };
        let highest = |number: Typed| {
            Typed::node(Num::HighestBit(Box::new(number.num)), Kind::INT, number.depth)
        };
        match name {
            "ffs" => lowest(number),
            "__ffs" | "__ffs64" => Typed::binary(Op::Sub, lowest(number)?, const_one),
            "fls" | "fls64" => highest(number),
            "__fls" | "ilog2" => Typed::binary(Op::Sub, highest(number)?, const_one),
            _ => Err(PrintError::unsupported("the function", name)),
        }
    }
}

fn seconds(op: Op, number: Typed) -> Result<Typed, PrintError> {
    let second = Typed::constant(1_000_000_000, Kind::U64);
    Typed::binary(op, number.cast(Kind::U64)?, second)
}

/// Size in bytes of a byte-order function, and whether it swaps on every machine.
fn byte_order_call(name: &str) -> Option<(u8, bool)> {
    match name {
        "ntohs" | "htons" => return Some((2, false)),
        "ntohl" | "htonl" => return Some((4, false)),
        _ => {}
    }
    let bits = |text: &str| match text {
        "16" => Some(2),
        "32" => Some(4),
        "64" => Some(8),
        _ => None,
    };
    for swap in ["__builtin_bswap", "swab", "__swab", "___constant_swab", "__fswab"] {
        if let Some(size) = name.strip_prefix(swap).and_then(bits) {
            return Some((size, true));
        }
    }
    let bare = name.trim_start_matches('_');
    let to = bare.strip_prefix("cpu_to_le").or_else(|| bare.strip_prefix("cpu_to_be"));
    let back = || {
        let middle = bare.strip_prefix("le").or_else(|| bare.strip_prefix("be"))?;
        middle.strip_suffix("_to_cpu")
    };
    Some((bits(to.or_else(back)?)?, false))
}
