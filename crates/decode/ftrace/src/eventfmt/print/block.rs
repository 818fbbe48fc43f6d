//! `({ ... })`: the statement expressions that print a page's role in KVM's MMU events.

use std::sync::Arc;

use super::ir::{Kind, Num, Op, Piece, Text};
use super::lexer::TokenKind;
use super::parser::{Operand, Parser};
use super::value::Typed;
use crate::eventfmt::error::PrintError;

/// Maximum depth of a local, which is copied at each use: deeper ones would multiply the program.
const MAX_LOCAL_DEPTH: u16 = 4;

/// The value of a name declared in a block.
#[derive(Clone, Debug)]
pub(super) enum Local {
    /// A pointer to the output of the block.
    Output,
    /// A table of strings.
    Strings(Arc<[Box<[u8]>]>),
    /// A `union kvm_mmu_page_role`, after its word is set.
    Role(Option<Typed>),
}

/// Bit-fields of `union kvm_mmu_page_role`: name, lowest bit, width.
///
/// The list has only fields with the same position in all kernels that print them this way.
const ROLE_BITS: &[(&str, u64, u32)] = &[
    ("level", 0, 4),
    ("gpte_is_8_bytes", 4, 1),
    ("has_4_byte_gpte", 4, 1),
    ("quadrant", 5, 2),
    ("direct", 7, 1),
    ("access", 8, 3),
    ("invalid", 11, 1),
    ("efer_nx", 12, 1),
    ("nxe", 12, 1),
    ("cr0_wp", 13, 1),
    ("smep_andnot_wp", 14, 1),
    ("smap_andnot_wp", 15, 1),
    ("ad_disabled", 16, 1),
    ("guest_mode", 17, 1),
];

impl<'t> Parser<'t> {
    /// A block after its opening `({`; this function consumes the closing brackets.
    pub(super) fn block(&mut self) -> Result<Operand, PrintError> {
        self.expect("{")?;
        let outer = self.locals.len();
        let mut printed = Vec::new();
        let result = self.statements(&mut printed);
        self.locals.truncate(outer);
        self.expect("}")?;
        self.expect(")")?;
        Ok(match result? {
            Operand::Output => Operand::Text(Text::Printed(printed.into())),
            other => other,
        })
    }

    /// Statements up to the one that gives the block's value.
    fn statements(&mut self, printed: &mut Vec<Piece>) -> Result<Operand, PrintError> {
        loop {
            match (self.peek(), self.peek_at(1)) {
                (Some(TokenKind::Word("trace_seq_printf")), _) => self.printf(printed)?,
                (Some(TokenKind::Word("trace_seq_putc" | "trace_seq_puts")), _) => {
                    self.put(printed)?;
                }
                (Some(TokenKind::Word(_)), Some(TokenKind::Word(_))) => self.declaration()?,
                (Some(TokenKind::Word(_)), Some(TokenKind::Mark("." | "="))) => {
                    self.assignment()?;
                }
                _ => {
                    let value = self.expression()?;
                    self.expect(";")?;
                    if self.at_mark("}") {
                        return Ok(value);
                    }
                }
            }
        }
    }

    fn printf(&mut self, printed: &mut Vec<Piece>) -> Result<(), PrintError> {
        self.output_argument()?;
        let pieces = self.nested(Self::template)?;
        printed.extend(pieces);
        self.expect(")")?;
        self.expect(";")
    }

    fn put(&mut self, printed: &mut Vec<Piece>) -> Result<(), PrintError> {
        self.output_argument()?;
        let literal = match self.peek() {
            Some(&TokenKind::Character(byte)) => {
                self.advance();
                vec![byte].into()
            }
            Some(TokenKind::Number("0")) => {
                self.advance();
                Box::default()
            }
            _ => self.literal()?,
        };
        printed.push(Piece::Literal(literal));
        self.expect(")")?;
        self.expect(";")
    }

    /// `name(p,`
    fn output_argument(&mut self) -> Result<(), PrintError> {
        self.advance();
        self.expect("(")?;
        self.word()?;
        self.expect(",")
    }

    /// A declaration such as `const char *saved_ptr = trace_seq_buffer_ptr(p);`.
    fn declaration(&mut self) -> Result<(), PrintError> {
        let (kind, name) = self.declared_name()?;
        let local = if self.take("[") {
            self.expect("]")?;
            self.expect("=")?;
            Local::Strings(self.string_table()?)
        } else if self.take("=") {
            self.output_pointer()?;
            Local::Output
        } else if kind == "union kvm_mmu_page_role" {
            Local::Role(None)
        } else {
            return Err(PrintError::unsupported("the local of type", kind));
        };
        self.locals.push((name, local));
        self.expect(";")
    }

    /// The words of a declaration and its name, which comes last.
    fn declared_name(&mut self) -> Result<(String, &'t str), PrintError> {
        let mut kind: Vec<&str> = Vec::new();
        loop {
            while self.take("*") {
                kind.push("*");
            }
            let word = self.word()?;
            if matches!(self.peek(), Some(TokenKind::Word(_) | TokenKind::Mark("*"))) {
                kind.push(word);
            } else {
                return Ok((kind.join(" "), word));
            }
        }
    }

    fn string_table(&mut self) -> Result<Arc<[Box<[u8]>]>, PrintError> {
        self.expect("{")?;
        let mut strings = Vec::new();
        while !self.take("}") {
            strings.push(self.literal()?);
            if !self.take(",") {
                self.expect("}")?;
                break;
            }
        }
        Ok(strings.into())
    }

    /// `trace_seq_buffer_ptr(p)`, or in older kernels `p->buffer + p->len`.
    fn output_pointer(&mut self) -> Result<(), PrintError> {
        let name = self.word()?;
        if self.take("->") {
            self.word()?;
            self.expect("+")?;
            self.word()?;
            self.expect("->")?;
            self.word()?;
            return Ok(());
        }
        if !matches!(name, "trace_seq_buffer_ptr" | "ftrace_print_ptr") {
            return Err(PrintError::unsupported("the function", name));
        }
        self.expect("(")?;
        self.word()?;
        self.expect(")")
    }

    /// `role.word = REC->role;`
    fn assignment(&mut self) -> Result<(), PrintError> {
        let name = self.word()?;
        self.expect(".")?;
        let member = self.word()?;
        self.expect("=")?;
        let value = self.number()?;
        if member != "word" || value.depth > MAX_LOCAL_DEPTH {
            return Err(PrintError::unsupported("the assignment to", format!("{name}.{member}")));
        }
        let local = self.locals.iter_mut().rev().find(|local| local.0 == name);
        match local {
            Some((_, Local::Role(word))) => *word = Some(value),
            _ => return Err(PrintError::unsupported("the assignment to", name)),
        }
        self.expect(";")
    }

    /// The local with this name, and the member access that follows.
    pub(super) fn local(&mut self, name: &str) -> Result<Option<Operand>, PrintError> {
        let Some((_, local)) = self.locals.iter().rev().find(|local| local.0 == name) else {
            return Ok(None);
        };
        let word = match local {
            Local::Output => return Ok(Some(Operand::Output)),
            Local::Strings(strings) => return Ok(Some(Operand::Strings(Arc::clone(strings)))),
            Local::Role(word) => word.clone(),
        };
        let word = word.ok_or_else(|| PrintError::unsupported("the unset local", name))?;
        self.expect(".")?;
        let member = self.word()?;
        if member == "word" {
            return Ok(Some(Operand::Number(word)));
        }
        let bits = ROLE_BITS.iter().find(|bits| bits.0 == member);
        let bits = bits.ok_or_else(|| PrintError::unsupported("the member", member))?;
        role_bits(word, bits.1, bits.2).map(|number| Some(Operand::Number(number)))
    }
}

/// A bit-field of the role. Only a word with a known position has members.
fn role_bits(word: Typed, shift: u64, width: u32) -> Result<Typed, PrintError> {
    if matches!(word.num, Num::Const(_)) {
        return Err(PrintError::unsupported("the assignment to", "role.word"));
    }
    let mask = 1u64.wrapping_shl(width).wrapping_sub(1);
    let word = word.cast(Kind::UNSIGNED)?;
    let shifted = Typed::binary(Op::Shr, word, Typed::constant(shift, Kind::INT))?;
    Typed::binary(Op::And, shifted, Typed::constant(mask, Kind::INT))
}
