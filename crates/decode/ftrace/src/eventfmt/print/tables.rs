//! Calls that print: `__print_symbolic` and its variants, `__get_str`, bitmasks.

use super::ir::{Array, Flags, HexBytes, HexDump, Kind, Num, Symbolic, Text};
use super::lexer::TokenKind;
use super::parser::Parser;
use super::value::Typed;
use crate::eventfmt::ctype::CType;
use crate::eventfmt::error::PrintError;

/// A value and its name.
type Entry = (u64, Box<[u8]>);

impl Parser<'_> {
    /// The text of a call, up to its closing bracket; `None` if the function does not print.
    pub(super) fn text_call(&mut self, name: &str) -> Result<Option<Text>, PrintError> {
        Ok(Some(match name {
            "__get_str" | "__get_rel_str" => Text::Chars(self.dynamic_field()?.place),
            "__get_bitmask" | "__get_rel_bitmask" => Text::Mask(self.dynamic_field()?.place),
            "__get_cpumask" | "__get_rel_cpumask" => Text::List(self.dynamic_field()?.place),
            "__print_symbolic" => self.symbolic(self.kind(CType::long(false)))?,
            "__print_symbolic_u64" => self.symbolic(Kind::U64)?,
            "__print_flags" => self.flags(self.kind(CType::long(false)))?,
            "__print_flags_u64" => self.flags(Kind::U64)?,
            "__print_hex" => self.hex(Some(b' '))?,
            "__print_hex_str" => self.hex(None)?,
            "__print_array" => self.array(true)?,
            "__print_dynamic_array" => self.array(false)?,
            "__print_hex_dump" => self.hex_dump()?,
            _ => return Ok(None),
        }))
    }

    fn symbolic(&mut self, kind: Kind) -> Result<Text, PrintError> {
        let value = self.number()?.cast(kind)?;
        let mut names = self.entries(kind)?;
        // The kernel uses the first name of a value.
        names.sort_by_key(|entry| entry.0);
        names.dedup_by_key(|entry| entry.0);
        Ok(Text::Symbol(Box::new(Symbolic::new(value.num, kind, names.into()))))
    }

    fn flags(&mut self, kind: Kind) -> Result<Text, PrintError> {
        let value = self.number()?.cast(kind)?;
        self.expect(",")?;
        let delimiter = if self.at_null()? { Box::default() } else { self.literal()? };
        let mut names = self.entries(kind)?;
        // A flag without bits would match every value.
        names.retain(|entry| entry.0 != 0);
        let names = names.into();
        Ok(Text::Flags(Box::new(Flags { value: value.num, kind, delimiter, names })))
    }

    /// Consumes a null pointer if it is next: `NULL`, `0`, or the preprocessor's `((void *)0)`.
    fn at_null(&mut self) -> Result<bool, PrintError> {
        if matches!(self.peek(), Some(TokenKind::Word("NULL"))) {
            self.advance();
            return Ok(true);
        }
        if matches!(self.peek(), Some(TokenKind::Text(_))) {
            return Ok(false);
        }
        let start = self.position();
        let is_zero = self.number().is_ok_and(|number| matches!(number.num, Num::Const(0)));
        if !is_zero {
            self.rewind(start);
            return Err(self.unexpected("a string"));
        }
        Ok(true)
    }

    /// Repetitions of `, { value, "name" }`. The kernel stops at the first entry without a name.
    fn entries(&mut self, kind: Kind) -> Result<Vec<Entry>, PrintError> {
        let (mut names, mut is_over) = (Vec::new(), false);
        while self.take(",") {
            if !self.take("{") {
                // Some tables end with a comma.
                return if self.at_mark(")") { Ok(names) } else { Err(self.unexpected("{")) };
            }
            // In some kernels, an empty entry ends the table.
            if self.take("}") {
                continue;
            }
            let value = self.entry_value(kind)?;
            self.expect(",")?;
            let name = if self.at_null()? { None } else { Some(self.literal()?) };
            self.expect("}")?;
            is_over |= name.is_none();
            names.extend(value.zip(name).filter(|_| !is_over));
        }
        Ok(names)
    }

    /// The value of an entry; `None` for a constant whose value the text does not have. Such an
    /// entry never matches, so its value is shown as a number.
    fn entry_value(&mut self, kind: Kind) -> Result<Option<u64>, PrintError> {
        let start = self.position();
        match self.number().and_then(|number| number.cast(kind)) {
            Ok(Typed { num: Num::Const(value), .. }) => Ok(Some(value)),
            Ok(_) => Err(PrintError::unsupported("in a table", "a value that varies")),
            Err(PrintError::Unsupported { what: "the constant", .. }) => {
                self.rewind(start);
                self.skip_to_comma()?;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn skip_to_comma(&mut self) -> Result<(), PrintError> {
        let mut open = 0usize;
        loop {
            match self.peek() {
                Some(TokenKind::Mark(",")) if open == 0 => return Ok(()),
                Some(TokenKind::Mark("(")) => open = open.saturating_add(1),
                Some(TokenKind::Mark(")")) => open = open.saturating_sub(1),
                None | Some(TokenKind::Mark("{" | "}")) => return Err(self.unexpected(",")),
                _ => {}
            }
            self.advance();
        }
    }

    fn hex(&mut self, separator: Option<u8>) -> Result<Text, PrintError> {
        let operand = self.expression()?;
        let place = self.as_bytes(operand)?.place;
        let len = self.next_number()?;
        Ok(Text::Hex(Box::new(HexBytes { place, len, separator })))
    }

    fn array(&mut self, counted: bool) -> Result<Text, PrintError> {
        let bytes = if counted {
            let operand = self.expression()?;
            self.as_bytes(operand)?
        } else {
            self.dynamic_field()?
        };
        let count = if counted { Some(self.next_number()?) } else { None };
        let element = self.next_number()?;
        Ok(Text::Array(Box::new(Array { place: bytes.place, count, element })))
    }

    fn hex_dump(&mut self) -> Result<Text, PrintError> {
        let prefix = self.literal()?;
        self.expect(",")?;
        let offsets = match self.peek() {
            Some(TokenKind::Word("DUMP_PREFIX_NONE") | TokenKind::Number("0")) => false,
            Some(TokenKind::Word("DUMP_PREFIX_OFFSET") | TokenKind::Number("2")) => true,
            _ => return Err(PrintError::unsupported("the prefix of", "__print_hex_dump")),
        };
        self.advance();
        let row = self.next_number()?;
        let group = self.next_number()?;
        self.expect(",")?;
        let operand = self.expression()?;
        let place = self.as_bytes(operand)?.place;
        let len = self.next_number()?;
        let ascii = self.next_number()?;
        Ok(Text::HexDump(Box::new(HexDump { prefix, offsets, row, group, place, len, ascii })))
    }

    fn next_number(&mut self) -> Result<Num, PrintError> {
        self.expect(",")?;
        Ok(self.number()?.num)
    }
}
