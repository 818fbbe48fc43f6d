//! Values after `=` and their types: integers, floating-point numbers, strings.

use raw_bytes::ByteOrder;

use super::parser::Parser;
use super::types::Named;
use crate::CtfError;
use crate::field::{FieldType, Float, Integer, Text};

/// A value after `=`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Number(i128),
    Text(String),
    /// A word, or words joined by dots.
    Word(String),
}

impl Value {
    fn is_true(&self) -> bool {
        match self {
            Self::Number(number) => *number != 0,
            Self::Text(text) | Self::Word(text) => text.eq_ignore_ascii_case("true"),
        }
    }
}

/// Parses a UUID with or without dashes.
pub(crate) fn uuid(text: &str) -> Option<[u8; 16]> {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
    let bytes: Vec<u8> = digits
        .chunks_exact(2)
        .filter_map(|two| u8::try_from(two.iter().fold(0, |sum, digit| sum * 16 + digit)).ok())
        .collect();
    bytes.try_into().ok()
}

impl Parser {
    /// `{ name = value; … }` in a type.
    fn attributes(&mut self) -> Result<Vec<(String, Value)>, CtfError> {
        let mut all = Vec::new();
        self.sign("{")?;
        while !self.take_sign("}") {
            if self.take_sign(";") {
                continue;
            }
            let name = self.word("the name of an attribute")?;
            self.sign("=")?;
            all.push((name, self.value()?));
            if !self.take_sign(";") {
                self.sign("}")?;
                break;
            }
        }
        Ok(all)
    }

    fn order_named(&self, value: &Value) -> Result<ByteOrder, CtfError> {
        match value {
            Value::Word(word) if word == "native" => Ok(self.order),
            Value::Word(word) if word == "be" || word == "network" => Ok(ByteOrder::Big),
            Value::Word(word) if word == "le" => Ok(ByteOrder::Little),
            other => self.fail(format!("{other:?} is not a byte order")),
        }
    }

    fn power_of_two(&self, value: &Value) -> Result<u32, CtfError> {
        let number = match value {
            Value::Number(number) => u32::try_from(*number).ok(),
            _ => None,
        };
        match number.filter(|number| number.is_power_of_two() && *number <= 1 << 16) {
            Some(number) => Ok(number),
            None => self.fail("an alignment is not a power of two"),
        }
    }

    pub(super) fn integer(&mut self) -> Result<Named, CtfError> {
        let mut integer = Integer::new(0, 0, self.order);
        for (name, value) in self.attributes()? {
            match (name.as_str(), &value) {
                ("size", Value::Number(bits)) => {
                    integer.bits = u32::try_from(*bits).unwrap_or(0);
                }
                ("align", _) => integer.align = self.power_of_two(&value)?,
                ("signed", _) => integer.signed = value.is_true(),
                ("byte_order", _) => integer.order = self.order_named(&value)?,
                ("base", _) => integer.base = base(&value),
                ("encoding", Value::Word(word)) => {
                    integer.is_text = matches!(word.as_str(), "UTF8" | "utf8" | "ASCII" | "ascii");
                }
                ("map", Value::Word(path)) => {
                    // `clock.NAME.value`
                    integer.clock = path.split('.').nth(1).map(Into::into);
                }
                _ => {}
            }
        }
        if !(1..=64).contains(&integer.bits) {
            return self.fail(format!("integers of {} bits are not supported", integer.bits));
        }
        if integer.align == 0 {
            integer.align = if integer.bits.is_multiple_of(8) { 8 } else { 1 };
        }
        Ok(Named::No(FieldType::Integer(integer)))
    }

    pub(super) fn floating_point(&mut self) -> Result<Named, CtfError> {
        let mut float = Float { bits: 0, align: 8, order: self.order };
        for (name, value) in self.attributes()? {
            match (name.as_str(), &value) {
                ("exp_dig" | "mant_dig", Value::Number(bits)) => {
                    let bits = u32::try_from(*bits).unwrap_or(0);
                    float.bits = float.bits.saturating_add(bits);
                }
                ("align", _) => float.align = self.power_of_two(&value)?,
                ("byte_order", _) => float.order = self.order_named(&value)?,
                _ => {}
            }
        }
        if !matches!(float.bits, 32 | 64) {
            return self.fail("a floating-point number has neither 32 nor 64 bits");
        }
        Ok(Named::No(FieldType::Float(float)))
    }

    pub(super) fn string(&mut self) -> Result<Named, CtfError> {
        if self.is_sign("{") {
            self.attributes()?;
        }
        Ok(Named::No(FieldType::Text(Text)))
    }
}

fn base(value: &Value) -> u8 {
    match value {
        Value::Number(16) => 16,
        Value::Number(8) => 8,
        Value::Number(2) => 2,
        Value::Word(word) => match word.as_str() {
            "hexadecimal" | "hex" | "x" | "X" | "p" => 16,
            "octal" | "oct" | "o" => 8,
            "binary" | "b" => 2,
            _ => 10,
        },
        _ => 10,
    }
}
