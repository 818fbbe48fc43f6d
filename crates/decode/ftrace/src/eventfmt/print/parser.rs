//! Parses the expressions of a print fmt, and compiles them in the same pass.

use std::sync::Arc;

use raw_bytes::{Abi, LongSize};

use super::block::Local;
use super::ir::{ByteRange, Kind, Num, Text};
use super::lexer::{Token, TokenKind};
use super::value::{self, Typed};
use crate::eventfmt::ctype::CType;
use crate::eventfmt::error::PrintError;
use crate::eventfmt::field::{ElementForm, Field, FieldKind};
use crate::eventfmt::format::EventFormat;

/// Maximum nesting; kernels stay below 30.
const MAX_NESTING: u32 = 80;

/// Maximum conversions; the longest print fmts of kernels have about 40.
const MAX_CONVERSIONS: usize = 512;

/// The meaning of an expression.
#[derive(Clone, Debug)]
pub(super) enum Operand {
    Number(Typed),
    Text(Text),
    /// Bytes of the record: an array, or a field's address.
    Bytes(Bytes),
    /// A table of strings declared in a block.
    Strings(Arc<[Box<[u8]>]>),
    /// The output of a block's statements so far.
    Output,
}

/// Bytes of the record, and their element type.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes {
    pub(super) place: ByteRange,
    pub(super) element: Kind,
}

/// The parser and its state.
pub(super) struct Parser<'t> {
    tokens: Vec<Token<'t>>,
    next: usize,
    end: usize,
    nesting: u32,
    conversions: usize,
    pub(super) format: &'t EventFormat,
    pub(super) abi: Abi,
    pub(super) locals: Vec<(&'t str, Local)>,
}

impl<'t> Parser<'t> {
    pub(super) fn new(format: &'t EventFormat, abi: Abi) -> Result<Self, PrintError> {
        let tokens = super::lexer::tokens(format.print_fmt())?;
        let end = format.print_fmt().len();
        Ok(Self {
            tokens,
            next: 0,
            end,
            nesting: 0,
            conversions: 0,
            format,
            abi,
            locals: Vec::new(),
        })
    }

    pub(super) fn long(&self) -> LongSize {
        self.abi.long
    }

    pub(super) fn kind(&self, ctype: CType) -> Kind {
        value::kind(ctype, self.abi.long)
    }

    // Tokens.

    pub(super) fn peek(&self) -> Option<&TokenKind<'t>> {
        self.peek_at(0)
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Option<&TokenKind<'t>> {
        self.tokens.get(self.next.saturating_add(ahead)).map(|token| &token.kind)
    }

    pub(super) fn advance(&mut self) {
        self.next = self.next.saturating_add(1);
    }

    pub(super) fn position(&self) -> usize {
        self.next
    }

    pub(super) fn rewind(&mut self, position: usize) {
        self.next = position;
    }

    pub(super) fn at_mark(&self, mark: &'static str) -> bool {
        self.peek() == Some(&TokenKind::Mark(mark))
    }

    /// Consumes the mark if it is next.
    pub(super) fn take(&mut self, mark: &'static str) -> bool {
        let found = self.at_mark(mark);
        if found {
            self.advance();
        }
        found
    }

    pub(super) fn expect(&mut self, mark: &'static str) -> Result<(), PrintError> {
        if self.take(mark) { Ok(()) } else { Err(self.unexpected(mark)) }
    }

    pub(super) fn word(&mut self) -> Result<&'t str, PrintError> {
        let Some(&TokenKind::Word(word)) = self.peek() else {
            return Err(self.unexpected("a name"));
        };
        self.advance();
        Ok(word)
    }

    /// Concatenates adjacent string literals.
    pub(super) fn literal(&mut self) -> Result<Box<[u8]>, PrintError> {
        let mut literal: Option<Vec<u8>> = None;
        while let Some(TokenKind::Text(text)) = self.peek() {
            let text = text.clone();
            self.advance();
            literal.get_or_insert_default().extend_from_slice(&text);
        }
        literal.map(Vec::into_boxed_slice).ok_or_else(|| self.unexpected("a string"))
    }

    pub(super) fn unexpected(&self, wanted: &'static str) -> PrintError {
        let token = self.tokens.get(self.next);
        let found = match token.map(|token| &token.kind) {
            None => "the end".to_owned(),
            Some(TokenKind::Word(text) | TokenKind::Number(text)) => (*text).to_owned(),
            Some(TokenKind::Mark(mark)) => (*mark).to_owned(),
            Some(TokenKind::Text(text)) => String::from_utf8_lossy(text).into_owned(),
            Some(TokenKind::Character(byte)) => char::from(*byte).to_string(),
        };
        PrintError::Syntax { at: token.map_or(self.end, |token| token.at), wanted, found }
    }

    // Expressions.

    /// Runs `parse` one level deeper.
    pub(super) fn nested<T>(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<T, PrintError>,
    ) -> Result<T, PrintError> {
        if self.nesting >= MAX_NESTING {
            return Err(PrintError::TooDeep);
        }
        self.nesting = self.nesting.saturating_add(1);
        let result = parse(self);
        self.nesting = self.nesting.saturating_sub(1);
        result
    }

    /// Counts a conversion. Each can print the whole record, so their number bounds the text of a
    /// record.
    pub(super) fn count_conversion(&mut self) -> Result<(), PrintError> {
        self.conversions = self.conversions.saturating_add(1);
        if self.conversions > MAX_CONVERSIONS {
            return Err(PrintError::TooManyConversions(MAX_CONVERSIONS));
        }
        Ok(())
    }

    /// An expression up to a comma or closing bracket.
    pub(super) fn expression(&mut self) -> Result<Operand, PrintError> {
        self.nested(|parser| {
            let condition = parser.operation(0)?;
            if parser.take("?") { parser.choice(condition) } else { Ok(condition) }
        })
    }

    pub(super) fn number(&mut self) -> Result<Typed, PrintError> {
        let operand = self.expression()?;
        self.as_number(operand)
    }

    // Conversions of operands.

    pub(super) fn as_number(&self, operand: Operand) -> Result<Typed, PrintError> {
        match operand {
            Operand::Number(number) => Ok(number),
            // A string literal as a condition, as in `cond && "x"`: its address is never zero.
            Operand::Text(Text::Literal(_)) => Ok(Typed::constant(1, Kind::INT)),
            Operand::Text(_) => Err(PrintError::unsupported("as a number", "a string")),
            Operand::Bytes(_) => Err(PrintError::unsupported("as a number", "an address")),
            Operand::Strings(_) | Operand::Output => {
                Err(PrintError::unsupported("as a number", "a local"))
            }
        }
    }

    pub(super) fn as_text(&self, operand: Operand) -> Result<Text, PrintError> {
        match operand {
            Operand::Text(text) => Ok(text),
            Operand::Bytes(bytes) => Ok(Text::Chars(bytes.place)),
            Operand::Number(number) => Ok(Text::Pointer(number.num)),
            Operand::Strings(_) | Operand::Output => {
                Err(PrintError::unsupported("as a string", "a local"))
            }
        }
    }

    pub(super) fn as_bytes(&self, operand: Operand) -> Result<Bytes, PrintError> {
        match operand {
            Operand::Bytes(bytes) => Ok(bytes),
            Operand::Number(Typed { field: Some((_, place)), kind, .. }) => {
                Ok(Bytes { place, element: kind })
            }
            _ => Err(PrintError::unsupported("as an address", "a computed value")),
        }
    }

    // Fields.

    /// The field of `REC->name`.
    pub(super) fn record_field(&self, name: &str) -> Result<Operand, PrintError> {
        let unknown = || PrintError::UnknownField(name.to_owned());
        let field = self.format.field(name).ok_or_else(unknown)?;
        let Some(at) = field.number() else { return Ok(Operand::Bytes(self.bytes_of(field))) };
        let position =
            self.format.fields().iter().position(|candidate| std::ptr::eq(candidate, field));
        let place = ByteRange::Fixed { offset: at.offset, len: u32::from(at.size) };
        let kind = Kind { size: at.size, signed: at.signed };
        let index = position.and_then(|position| u32::try_from(position).ok()).unwrap_or(u32::MAX);
        let number = Typed::leaf(Num::Field(at), kind);
        Ok(Operand::Number(Typed { field: Some((index, place)), ..number }))
    }

    /// The bytes of an array, inside or outside the field.
    pub(super) fn bytes_of(&self, field: &Field) -> Bytes {
        let place = match field.kind {
            FieldKind::Dynamic(_) => ByteRange::Located { at: field.offset, base: 0 },
            FieldKind::Relative(_) => ByteRange::Located { at: field.offset, base: field.end() },
            _ if field.open_ended => ByteRange::Fixed { offset: field.offset, len: 0 },
            _ => ByteRange::Fixed { offset: field.offset, len: field.size },
        };
        let size = match field.kind {
            FieldKind::Array(element)
            | FieldKind::Dynamic(element)
            | FieldKind::Relative(element) => match element.form {
                ElementForm::Long => self.long().bytes() as u8,
                _ => u8::try_from(element.size).unwrap_or(1),
            },
            FieldKind::Number(_) | FieldKind::Opaque => 1,
        };
        Bytes { place, element: Kind { size, signed: field.signed } }
    }
}
