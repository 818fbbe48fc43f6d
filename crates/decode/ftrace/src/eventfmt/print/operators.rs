//! Operators, casts and type names in expressions.

use super::ir::{Element, Kind, Num, Op, Text};
use super::lexer::TokenKind;
use super::parser::{Bytes, Operand, Parser};
use super::value::Typed;
use crate::eventfmt::ctype;
use crate::eventfmt::error::PrintError;

impl Parser<'_> {
    /// The rest of `condition ? yes : no`, or of GNU C's `value ?: no`.
    pub(super) fn choice(&mut self, condition: Operand) -> Result<Operand, PrintError> {
        let yes = if self.at_mark(":") { condition.clone() } else { self.expression()? };
        self.expect(":")?;
        let no = self.expression()?;
        let condition = self.as_number(condition)?;
        match (yes, no) {
            (Operand::Number(yes), Operand::Number(no)) => {
                condition.choice(yes, no).map(Operand::Number)
            }
            (yes, no) => {
                let (yes, no) = (self.as_text(yes)?, self.as_text(no)?);
                Ok(Operand::Text(Text::Choice(Box::new((condition.num, yes, no)))))
            }
        }
    }

    /// Binary operators with at least the precedence `min`.
    pub(super) fn operation(&mut self, min: u8) -> Result<Operand, PrintError> {
        let mut lhs = self.unary()?;
        while let Some((mark, binding)) = self.peek_operator().filter(|operator| operator.1 >= min)
        {
            self.advance();
            let right = self.nested(|parser| parser.operation(binding.saturating_add(1)))?;
            lhs = self.combine(mark, lhs, right)?;
        }
        Ok(lhs)
    }

    fn peek_operator(&self) -> Option<(&'static str, u8)> {
        let Some(&TokenKind::Mark(mark)) = self.peek() else { return None };
        let binding = match mark {
            "||" => 1,
            "&&" => 2,
            "|" => 3,
            "^" => 4,
            "&" => 5,
            "==" | "!=" => 6,
            "<" | ">" | "<=" | ">=" => 7,
            "<<" | ">>" => 8,
            "+" | "-" => 9,
            "*" | "/" | "%" => 10,
            _ => return None,
        };
        Some((mark, binding))
    }

    fn combine(
        &mut self,
        mark: &'static str,
        lhs: Operand,
        right: Operand,
    ) -> Result<Operand, PrintError> {
        let (lhs, right) = (self.as_number(lhs)?, self.as_number(right)?);
        let (op, swap) = match mark {
            "||" => (Op::Either, false),
            "&&" => (Op::Both, false),
            "|" => (Op::Or, false),
            "^" => (Op::Xor, false),
            "&" => (Op::And, false),
            "==" => (Op::Equal, false),
            "!=" => (Op::NotEqual, false),
            "<" => (Op::Less, false),
            ">" => (Op::Less, true),
            "<=" => (Op::LessEqual, false),
            ">=" => (Op::LessEqual, true),
            "<<" => (Op::Shl, false),
            ">>" => (Op::Shr, false),
            "+" => (Op::Add, false),
            "-" => (Op::Sub, false),
            "*" => (Op::Mul, false),
            "/" => (Op::Div, false),
            _ => (Op::Rem, false),
        };
        let (lhs, right) = if swap { (right, lhs) } else { (lhs, right) };
        Typed::binary(op, lhs, right).map(Operand::Number)
    }

    fn unary(&mut self) -> Result<Operand, PrintError> {
        let Some(&TokenKind::Mark(mark)) = self.peek() else { return self.postfix() };
        match mark {
            "!" | "~" | "-" | "+" => {
                self.advance();
                let operand = self.nested(Self::unary)?;
                let number = self.as_number(operand)?;
                let result = match mark {
                    "!" => number.not(),
                    "~" => number.unary(Op::Xor, u64::MAX),
                    "-" => number.unary(Op::Sub, 0),
                    _ => number.unary(Op::Add, 0),
                };
                result.map(Operand::Number)
            }
            "&" => {
                self.advance();
                let operand = self.nested(Self::unary)?;
                self.address_of(operand)
            }
            "*" => {
                self.advance();
                let operand = self.nested(Self::unary)?;
                self.index(operand, Typed::constant(0, Kind::INT))
            }
            "(" if self.cast_ahead() => {
                self.advance();
                let name = self.type_name()?;
                self.expect(")")?;
                let operand = self.nested(Self::unary)?;
                self.cast(&name, operand)
            }
            _ => self.postfix(),
        }
    }

    fn postfix(&mut self) -> Result<Operand, PrintError> {
        let mut operand = self.primary()?;
        while self.take("[") {
            let index = self.number()?;
            self.expect("]")?;
            operand = self.index(operand, index)?;
        }
        Ok(operand)
    }

    fn address_of(&mut self, operand: Operand) -> Result<Operand, PrintError> {
        match operand {
            Operand::Bytes(_) => Ok(operand),
            Operand::Number(Typed { field: Some((_, place)), kind, .. }) => {
                Ok(Operand::Bytes(Bytes { place, element: kind }))
            }
            Operand::Number(Typed { num: Num::Element(element), .. })
                if element.index == Num::Const(0) =>
            {
                Ok(Operand::Bytes(Bytes { place: element.place, element: element.kind }))
            }
            _ => Err(PrintError::unsupported("the operator", "&")),
        }
    }

    fn index(&mut self, operand: Operand, index: Typed) -> Result<Operand, PrintError> {
        match operand {
            Operand::Bytes(Bytes { place, element }) => {
                let node = Element { place, kind: element, index: index.num };
                Typed::node(Num::Element(Box::new(node)), element, index.depth).map(Operand::Number)
            }
            Operand::Strings(strings) => Ok(Operand::Text(Text::Indexed(strings, index.num))),
            _ => Err(PrintError::unsupported("the operator", "[] or *")),
        }
    }

    fn cast(&mut self, name: &str, operand: Operand) -> Result<Operand, PrintError> {
        match operand {
            Operand::Number(number) if matches!(name, "bool" | "_Bool") => {
                number.not()?.not()?.cast(Kind { size: 1, signed: false }).map(Operand::Number)
            }
            Operand::Number(number) => {
                let ctype = ctype::named(name);
                let ctype = ctype.ok_or_else(|| PrintError::unsupported("the type", name))?;
                number.cast(self.kind(ctype)).map(Operand::Number)
            }
            Operand::Bytes(bytes) => match name.trim_end().strip_suffix('*') {
                Some(element) => {
                    let element = ctype::named(element).map(|ctype| self.kind(ctype));
                    let element = element.unwrap_or(bytes.element);
                    Ok(Operand::Bytes(Bytes { element, ..bytes }))
                }
                None => Err(PrintError::unsupported("the cast of an array to", name)),
            },
            other => Ok(other),
        }
    }

    /// Whether `(` starts a cast: a type follows, or an unknown name that can only be a type.
    fn cast_ahead(&self) -> bool {
        let Some(TokenKind::Word(word)) = self.peek_at(1) else { return false };
        if ctype::begins_type(word) {
            return true;
        }
        let mut ahead = 2usize;
        while self.peek_at(ahead) == Some(&TokenKind::Mark("*")) {
            ahead = ahead.saturating_add(1);
        }
        let closed = self.peek_at(ahead) == Some(&TokenKind::Mark(")"));
        let operand = matches!(
            self.peek_at(ahead.saturating_add(1)),
            Some(TokenKind::Word(_) | TokenKind::Number(_) | TokenKind::Mark("("))
        );
        closed && operand && *word != "REC"
    }

    /// The words and asterisks of a type.
    pub(super) fn type_name(&mut self) -> Result<String, PrintError> {
        let mut name = self.word()?.to_owned();
        loop {
            match self.peek() {
                Some(TokenKind::Word(word)) => {
                    name.push(' ');
                    name.push_str(word);
                }
                Some(TokenKind::Mark("*")) => name.push('*'),
                _ => return Ok(name),
            }
            self.advance();
        }
    }
}
