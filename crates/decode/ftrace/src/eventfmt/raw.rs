//! Prints records as `name=value` pairs, for events whose print fmt is unusable.

use raw_bytes::ByteOrder;

use crate::eventfmt::digits::{self, Radix, Shape};
use crate::eventfmt::field::{ElementForm, Field, FieldKind, NumberForm, until_nul};
use crate::eventfmt::format::EventFormat;
use crate::eventfmt::number::sign_extend;

/// Appends ` name=value` for every event field inside the record.
pub fn write_raw(format: &EventFormat, record: &[u8], order: ByteOrder, out: &mut Vec<u8>) {
    for field in format.fields() {
        write_name(field, out);
        write_field(field, record, order, out);
    }
}

pub(crate) fn write_name(field: &Field, out: &mut Vec<u8>) {
    out.push(b' ');
    out.extend_from_slice(field.name.as_bytes());
    out.push(b'=');
}

/// Appends a field; nothing if the record ends before it.
pub(crate) fn write_field(field: &Field, record: &[u8], order: ByteOrder, out: &mut Vec<u8>) {
    match field.kind {
        FieldKind::Number(form) => {
            if let Some(number) = field.unsigned(record, order) {
                write_number(field, form, number, out);
            }
        }
        FieldKind::Array(element) | FieldKind::Dynamic(element) | FieldKind::Relative(element) => {
            let texty = matches!(element.form, ElementForm::Text | ElementForm::Byte);
            write_bytes(field.bytes(record, order), texty, out);
        }
        FieldKind::Opaque => write_bytes(field.bytes(record, order), false, out),
    }
}

fn write_number(field: &Field, form: NumberForm, number: u64, out: &mut Vec<u8>) {
    // trace-cmd prints two-byte signed numbers with a width of two.
    let width = if field.size == 2 { 2 } else { 0 };
    match form {
        NumberForm::Pointer => digits::address(out, number),
        NumberForm::Long if !field.signed || field.size == 4 => digits::address(out, number),
        _ if field.signed => {
            let size = u8::try_from(field.size).unwrap_or(8);
            let shape = Shape { width, ..Shape::default() };
            digits::signed(out, sign_extend(number, size), shape);
        }
        _ => digits::plain(out, number, Radix::Decimal),
    }
}

fn write_bytes(bytes: Option<&[u8]>, texty: bool, out: &mut Vec<u8>) {
    let Some(bytes) = bytes else { return };
    if texty && until_nul(bytes).iter().all(|&byte| is_printable(byte)) {
        out.extend_from_slice(until_nul(bytes));
        return;
    }
    out.extend_from_slice(b"ARRAY[");
    for (index, &byte) in bytes.iter().enumerate() {
        if index > 0 {
            out.extend_from_slice(b", ");
        }
        digits::hex_byte(out, byte);
    }
    out.push(b']');
}

fn is_printable(byte: u8) -> bool {
    byte.is_ascii_graphic() || byte.is_ascii_whitespace() || byte == 0x0b
}
