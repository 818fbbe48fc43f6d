//! Format strings with their arguments, as in `"%d %s", REC->a, REC->b`.

use super::ir::{Conversion, ConversionKind, Kind, Num, Piece};
use super::parser::{Operand, Parser};
use super::pointer;
use super::quick::Quick;
use super::spec::{self, Amount, Length, Spec};
use crate::eventfmt::ctype::CType;
use crate::eventfmt::digits::{Radix, Shape};
use crate::eventfmt::error::PrintError;

impl Parser<'_> {
    /// A format string with its arguments, up to the end or a closing bracket.
    pub(super) fn template(&mut self) -> Result<Vec<Piece>, PrintError> {
        let format = self.literal()?;
        let mut pieces = Vec::new();
        let mut literal = Vec::new();
        let mut rest = &*format;
        while let Some((&byte, tail)) = rest.split_first() {
            if byte != b'%' {
                literal.push(byte);
                rest = tail;
            } else if let Some(tail) = tail.strip_prefix(b"%") {
                literal.push(b'%');
                rest = tail;
            } else {
                let (spec, tail) = spec::parse(tail).map_err(unknown_conversion)?;
                if !literal.is_empty() {
                    pieces.push(Piece::Literal(std::mem::take(&mut literal).into()));
                }
                pieces.push(Piece::Conversion(Box::new(self.conversion(&spec)?)));
                rest = tail;
            }
        }
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal.into()));
        }
        // C evaluates arguments without a conversion, but does not print them.
        while self.take(",") {
            self.expression()?;
        }
        Ok(pieces)
    }

    fn argument(&mut self, spec: &Spec<'_>) -> Result<Operand, PrintError> {
        if !self.take(",") {
            let text = String::from_utf8_lossy(spec.text).into_owned();
            return Err(PrintError::MissingArgument(format!("%{text}")));
        }
        self.expression()
    }

    fn amount(&mut self, spec: &Spec<'_>, amount: Amount) -> Result<Option<Num>, PrintError> {
        if amount != Amount::Argument {
            return Ok(None);
        }
        let operand = self.argument(spec)?;
        Ok(Some(self.as_number(operand)?.cast(Kind::INT)?.num))
    }

    fn conversion(&mut self, spec: &Spec<'_>) -> Result<Conversion, PrintError> {
        self.count_conversion()?;
        let width = self.amount(spec, spec.width)?;
        let precision = self.amount(spec, spec.precision)?;
        let operand = self.argument(spec)?;
        let field = match &operand {
            Operand::Number(number) => number.field.map(|field| field.0),
            _ => None,
        };
        let shape = Shape {
            width: spec.width.fixed(),
            precision: (spec.precision != Amount::None).then(|| spec.precision.fixed()),
            ..spec.flags
        };
        let fixed = width.is_none() && precision.is_none();
        let plain = fixed && shape == Shape::default();
        let what = self.what(spec, operand)?;
        let quick = Quick::from_conversion(&what, shape).filter(|_| fixed);
        Ok(Conversion { shape, width, precision, plain, what, quick, field })
    }

    fn what(&mut self, spec: &Spec<'_>, operand: Operand) -> Result<ConversionKind, PrintError> {
        let unsigned = self.shown_kind(spec.length);
        let signed = Kind { signed: true, ..unsigned };
        Ok(match spec.conversion {
            b's' => ConversionKind::Text(self.as_text(operand)?),
            b'p' => return self.pointer(spec, operand),
            b'c' => ConversionKind::Character(self.as_number(operand)?.num),
            b'd' | b'i' => ConversionKind::Signed(self.as_number(operand)?.num, signed),
            b'u' => {
                ConversionKind::Unsigned(self.as_number(operand)?.num, unsigned, Radix::Decimal)
            }
            b'x' => ConversionKind::Unsigned(self.as_number(operand)?.num, unsigned, Radix::Hex),
            b'X' => {
                ConversionKind::Unsigned(self.as_number(operand)?.num, unsigned, Radix::UpperHex)
            }
            b'o' => ConversionKind::Unsigned(self.as_number(operand)?.num, unsigned, Radix::Octal),
            _ => return Err(unknown_conversion(spec.text)),
        })
    }

    fn pointer(&mut self, spec: &Spec<'_>, operand: Operand) -> Result<ConversionKind, PrintError> {
        Ok(match pointer::parse(spec.suffix) {
            pointer::Meaning::Function { offset } => {
                ConversionKind::Function { address: self.as_number(operand)?.num, offset }
            }
            pointer::Meaning::Address => ConversionKind::Address(self.as_number(operand)?.num),
            pointer::Meaning::Bytes(pointed) => {
                ConversionKind::Pointed(pointed, self.as_bytes(operand)?.place)
            }
        })
    }

    fn shown_kind(&self, length: Length) -> Kind {
        let size = match length {
            Length::Char => 1,
            Length::Short => 2,
            Length::Int => 4,
            Length::Long => CType::long(false).size_in(self.long()),
            Length::LongLong => 8,
        };
        Kind { size, signed: false }
    }
}

fn unknown_conversion(text: &[u8]) -> PrintError {
    let text = text.get(..text.len().min(8)).unwrap_or(text);
    PrintError::unsupported("the conversion", format!("%{}", String::from_utf8_lossy(text)))
}
