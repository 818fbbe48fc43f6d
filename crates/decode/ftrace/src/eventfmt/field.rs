//! A field of an event: its position, its type, and how to read it from a record.

use raw_bytes::ByteOrder;

use crate::eventfmt::declaration::{self, Declaration, Mark};
use crate::eventfmt::error::FormatError;
use crate::eventfmt::number::{self, NumberAt};
use crate::eventfmt::text;
use crate::eventfmt::value::{Elements, Value};

/// Maximum size of a record, which is that of a sub-buffer.
const MAX_RECORD: u64 = 1 << 20;

/// A field of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The kernel's name for the field.
    pub name: Box<str>,
    /// The C type, with array lengths: `char[16]`.
    pub type_text: Box<str>,
    /// Offset from the start of the record.
    pub offset: u32,
    /// Size in bytes; 0 for an array that extends to the end of the record.
    pub size: u32,
    /// Whether the type, or the element type, is signed.
    pub signed: bool,
    /// The meaning of the bytes.
    pub kind: FieldKind,
    /// Whether it extends to the end of the record, regardless of its size.
    pub open_ended: bool,
}

/// The meaning of a field's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// A number of 1, 2, 4 or 8 bytes.
    Number(NumberForm),
    /// Elements inside the field.
    Array(Element),
    /// `__data_loc`: the field holds the position of elements elsewhere in the record.
    Dynamic(Element),
    /// `__rel_loc`: the same, with a position relative to the end of the field.
    Relative(Element),
    /// A struct or another type that is not a number.
    Opaque,
}

/// The meaning of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberForm {
    /// An integer or an enum.
    Integer,
    /// A `long` or `long long`: often an address, so it is shown in hex without a print fmt.
    Long,
    /// An address in the recorded kernel.
    Pointer,
    /// A boolean.
    Bool,
}

/// The element type of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    /// Size in bytes of one element, at least 1.
    pub size: u32,
    /// The kind of element.
    pub form: ElementForm,
}

/// The kind of an array's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementForm {
    /// `char`: a string that ends at its first NUL.
    Text,
    /// Other one-byte numbers; some kernels store strings in them.
    Byte,
    /// Larger numbers.
    Number,
    /// A C `long`, whose size the format text does not have; `size` is a guess of 8.
    Long,
    /// The bits of a cpumask.
    Bits,
}

impl Field {
    /// Parses one `field:` line.
    pub(crate) fn parse(line: &str) -> Result<Self, FormatError> {
        let mut parts = line.split(';').map(str::trim);
        let declared = parts.next().and_then(|part| part.strip_prefix("field:")).unwrap_or("");
        let declaration = declaration::parse(declared)
            .ok_or_else(|| FormatError::Declaration(declared.to_owned()))?;
        let (mut offset, mut size, mut signed) = (None, None, None);
        for part in parts {
            match part.split_once(':') {
                Some(("offset", number)) => offset = Some(bounded("offset", number)?),
                Some(("size", number)) => size = Some(bounded("size", number)?),
                Some(("signed", number)) => signed = Some(number.trim() == "1"),
                _ => {}
            }
        }
        let offset = offset.ok_or(FormatError::Missing("offset"))?;
        let size = size.ok_or(FormatError::Missing("size"))?;
        let signed = signed.unwrap_or_else(|| looks_signed(&declaration));
        Ok(Self::new(&declaration, offset, size, signed))
    }

    fn new(declaration: &Declaration<'_>, offset: u32, size: u32, signed: bool) -> Self {
        let mark = match declaration.mark {
            Some(Mark::FromRecord) => "__data_loc ",
            Some(Mark::FromField) => "__rel_loc ",
            None => "",
        };
        Self {
            name: declaration.name.into(),
            type_text: format!("{mark}{}{}", declaration.base, declaration.lengths).into(),
            offset,
            size,
            signed,
            kind: kind(declaration, size),
            open_ended: false,
        }
    }

    /// The position of the field's number; `None` for arrays, strings and structs.
    #[must_use]
    pub fn number(&self) -> Option<NumberAt> {
        let FieldKind::Number(_) = self.kind else { return None };
        let size = u8::try_from(self.size).ok()?;
        Some(NumberAt { offset: self.offset, size, signed: self.signed })
    }

    /// The position of an element in an array inside the field. `None` past the end of the array,
    /// and for other fields.
    #[must_use]
    pub fn element(&self, index: u32) -> Option<NumberAt> {
        let FieldKind::Array(Element { size, form: ElementForm::Number | ElementForm::Long }) =
            self.kind
        else {
            return None;
        };
        let from = index.checked_mul(size)?;
        let fits = from.checked_add(size)? <= self.size;
        let offset = self.offset.checked_add(from).filter(|_| fits)?;
        Some(NumberAt {
            offset,
            size: u8::try_from(size).ok().filter(|size| *size <= 8)?,
            signed: self.signed,
        })
    }

    /// The field's number, zero-extended; `None` past the end of the record, and for other fields.
    #[must_use]
    pub fn unsigned(&self, record: &[u8], order: ByteOrder) -> Option<u64> {
        self.number()?.read(record, order)
    }

    /// The field's number, sign-extended if its type is signed.
    #[must_use]
    pub fn signed(&self, record: &[u8], order: ByteOrder) -> Option<i64> {
        self.number()?.read_signed(record, order)
    }

    /// The bytes of the field, or those that it points at; `None` if the record is too short.
    #[must_use]
    pub fn bytes<'r>(&self, record: &'r [u8], order: ByteOrder) -> Option<&'r [u8]> {
        let start = self.offset as usize;
        match self.kind {
            FieldKind::Dynamic(_) => located(record, order, self.offset, 0),
            FieldKind::Relative(_) => located(record, order, self.offset, self.end()),
            _ if self.size == 0 || self.open_ended => record.get(start..),
            _ => record.get(start..start.saturating_add(self.size as usize)),
        }
    }

    /// The field's value according to its type; `None` if the record is too short.
    #[must_use]
    pub fn value<'r>(&self, record: &'r [u8], order: ByteOrder) -> Option<Value<'r>> {
        let element = match self.kind {
            FieldKind::Number(form) => return self.number_value(form, record, order),
            FieldKind::Array(element)
            | FieldKind::Dynamic(element)
            | FieldKind::Relative(element) => element,
            FieldKind::Opaque => Element { size: 1, form: ElementForm::Byte },
        };
        let bytes = self.bytes(record, order)?;
        Some(match element.form {
            ElementForm::Text => Value::Text(until_nul(bytes)),
            _ => Value::Array(Elements { element_size: element.size, signed: self.signed, bytes }),
        })
    }

    fn number_value<'r>(
        &self,
        form: NumberForm,
        record: &[u8],
        order: ByteOrder,
    ) -> Option<Value<'r>> {
        let at = self.number()?;
        Some(match form {
            NumberForm::Pointer => Value::Pointer(at.read(record, order)?),
            NumberForm::Bool => Value::Bool(at.read(record, order)? != 0),
            _ if self.signed => Value::Signed(at.read_signed(record, order)?),
            _ => Value::Unsigned(at.read(record, order)?),
        })
    }

    /// Writes a number to the field of a synthetic record; `false` if it does not fit.
    pub fn poke(&self, record: &mut [u8], order: ByteOrder, value: u64) -> bool {
        let size = self.size as usize;
        self.number().is_some() && number::poke(record, order, self.offset, size, value)
    }

    /// Offset of the first byte after the field.
    pub(crate) fn end(&self) -> u32 {
        self.offset.saturating_add(self.size)
    }
}

/// The data of a `__data_loc` word at `offset`: length in the high half, position in the low half.
pub(crate) fn located(record: &[u8], order: ByteOrder, offset: u32, base: u32) -> Option<&[u8]> {
    let word = order.u32_at(record, offset as usize)?;
    let start = (word & 0xffff).saturating_add(base) as usize;
    record.get(start..start.saturating_add((word >> 16) as usize))
}

/// The bytes before the first NUL.
pub(crate) fn until_nul(bytes: &[u8]) -> &[u8] {
    let len = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    bytes.get(..len).unwrap_or(bytes)
}

/// Appends the bytes before the first NUL. For 16 bytes, the size of thread names, word operations
/// find the NUL, and the copy needs no function call.
#[inline]
pub(crate) fn append_until_nul(bytes: &[u8], out: &mut Vec<u8>) {
    const NAME_BYTES: usize = 16;
    const ONES: u128 = u128::MAX / 0xff;
    match bytes.first_chunk::<NAME_BYTES>() {
        Some(name) if bytes.len() == NAME_BYTES => {
            let word = u128::from_le_bytes(*name);
            // The lowest set bit marks the first NUL byte; higher bits can be wrong.
            let nuls = word.wrapping_sub(ONES) & !word & (ONES << 7);
            let end = out.len().saturating_add(nuls.trailing_zeros() as usize / 8);
            out.extend_from_slice(name);
            out.truncate(end);
        }
        _ => out.extend_from_slice(until_nul(bytes)),
    }
}

fn bounded(key: &'static str, text: &str) -> Result<u32, FormatError> {
    text::number(text.trim())
        .filter(|&number| number <= MAX_RECORD)
        .and_then(|number| u32::try_from(number).ok())
        .ok_or_else(|| FormatError::Number { key, text: text.to_owned() })
}

/// Formats of old kernels do not state whether a field is signed.
fn looks_signed(declaration: &Declaration<'_>) -> bool {
    let base = declaration.base;
    let unsigned = ["unsigned", "u8", "u16", "u32", "u64", "bool", "size_t", "struct", "union"];
    !declaration.pointer && !base.split(['_', ' ']).any(|word| unsigned.contains(&word))
}

fn kind(declaration: &Declaration<'_>, size: u32) -> FieldKind {
    let element = || element(declaration, size);
    match declaration.mark {
        Some(Mark::FromRecord) => FieldKind::Dynamic(element()),
        Some(Mark::FromField) => FieldKind::Relative(element()),
        None if !declaration.lengths.is_empty() => FieldKind::Array(element()),
        None => scalar(declaration, size),
    }
}

fn scalar(declaration: &Declaration<'_>, size: u32) -> FieldKind {
    match size {
        1 | 2 | 4 | 8 if declaration.pointer => FieldKind::Number(NumberForm::Pointer),
        1 | 2 | 4 | 8 if declaration.base.contains("long") => FieldKind::Number(NumberForm::Long),
        1 if matches!(declaration.base, "bool" | "_Bool") => FieldKind::Number(NumberForm::Bool),
        1 | 2 | 4 | 8 => FieldKind::Number(NumberForm::Integer),
        _ => FieldKind::Opaque,
    }
}

fn element(declaration: &Declaration<'_>, size: u32) -> Element {
    let counted = declaration.count().filter(|_| declaration.mark.is_none());
    let divided = counted.and_then(|count| size.checked_div(count)).filter(|&size| size > 0);
    let base = declaration.base.trim_start_matches("const ");
    let known = crate::eventfmt::ctype::named(base).map(|known| u32::from(known.size()));
    let size = divided.or(known).unwrap_or(1).max(1);
    let form = match base {
        _ if declaration.pointer => ElementForm::Long,
        "char" => ElementForm::Text,
        "cpumask_t" => ElementForm::Bits,
        "long" | "unsigned long" | "long unsigned int" => ElementForm::Long,
        _ if size == 1 => ElementForm::Byte,
        _ => ElementForm::Number,
    };
    Element { size, form }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_at_their_first_nul() {
        for len in 0..40 {
            for nul in 0..=len {
                let mut bytes = vec![0x80; len];
                bytes.iter_mut().skip(nul).step_by(2).for_each(|byte| *byte = 0);
                bytes.iter_mut().skip(nul + 1).step_by(2).for_each(|byte| *byte = 1);
                let mut out = b"before".to_vec();
                append_until_nul(&bytes, &mut out);
                assert_eq!(out, [b"before", until_nul(&bytes)].concat());
                assert_eq!(until_nul(&bytes).len(), nul);
            }
        }
    }
}
