//! Texts of print functions: flags, hex bytes, arrays, dumps.

use super::ir::{Array, Flags, HexBytes, HexDump};
use super::pointer;
use super::writer::Writer;
use crate::eventfmt::digits::{self, Radix, Shape};
use crate::eventfmt::error::WriteError;

/// `__print_flags`: the names of the set bits, then the remaining bits in hex.
pub(super) fn flags(
    writer: Writer<'_>,
    flags: &Flags,
    out: &mut Vec<u8>,
) -> Result<(), WriteError> {
    let mut remaining = flags.kind.fit(writer.record.eval(&flags.value)?);
    let mut first = true;
    for (mask, name) in &flags.names {
        if remaining & mask != *mask {
            continue;
        }
        if !std::mem::take(&mut first) {
            out.extend_from_slice(&flags.delimiter);
        }
        out.extend_from_slice(name);
        remaining &= !mask;
    }
    if remaining != 0 {
        if !first {
            out.extend_from_slice(&flags.delimiter);
        }
        digits::address(out, remaining);
    }
    Ok(())
}

/// `__print_hex`: bytes in hex.
pub(super) fn hex(writer: Writer<'_>, hex: &HexBytes, out: &mut Vec<u8>) -> Result<(), WriteError> {
    let len = usize::try_from(writer.record.eval(&hex.len)?).map_err(|_| WriteError::Short)?;
    let bytes = writer.record.first(hex.place, len)?;
    pointer::joined(out, bytes.iter(), hex.separator);
    Ok(())
}

/// `__print_array`: elements in hex, in braces.
pub(super) fn array(
    writer: Writer<'_>,
    array: &Array,
    out: &mut Vec<u8>,
) -> Result<(), WriteError> {
    let size = usize::try_from(writer.record.eval(&array.element)?).unwrap_or(0);
    if !matches!(size, 1 | 2 | 4 | 8) {
        return Err(WriteError::Short);
    }
    let bytes = match &array.count {
        Some(count) => {
            let count = usize::try_from(writer.record.eval(count)?).ok();
            let len = count.and_then(|count| count.checked_mul(size)).ok_or(WriteError::Short)?;
            writer.record.first(array.place, len)?
        }
        None => writer.record.at(array.place)?,
    };
    out.push(b'{');
    for (index, element) in bytes.chunks_exact(size).enumerate() {
        if index > 0 {
            out.push(b',');
        }
        digits::address(out, writer.record.order.uint_at(element, 0, size).unwrap_or(0));
    }
    out.push(b'}');
    Ok(())
}

/// `__print_hex_dump`: rows of hex, each on its own line.
pub(super) fn hex_dump(
    writer: Writer<'_>,
    dump: &HexDump,
    out: &mut Vec<u8>,
) -> Result<(), WriteError> {
    let len = usize::try_from(writer.record.eval(&dump.len)?).map_err(|_| WriteError::Short)?;
    let bytes = writer.record.first(dump.place, len)?;
    let row = if writer.record.eval(&dump.row)? == 32 { 32 } else { 16 };
    let group = match writer.record.eval(&dump.group)? {
        size @ (2 | 4 | 8) if len.is_multiple_of(size as usize) => size as usize,
        _ => 1,
    };
    let ascii = writer.record.eval(&dump.ascii)? != 0;
    out.push(b'\n');
    for (index, bytes) in bytes.chunks(row).enumerate() {
        out.extend_from_slice(&dump.prefix);
        if dump.offsets {
            let shape = Shape { zero: true, width: 8, ..Shape::default() };
            digits::unsigned(out, index.saturating_mul(row) as u64, Radix::Hex, shape);
            out.extend_from_slice(b": ");
        }
        dump_row(writer, bytes, row, group, ascii, out);
        out.push(b'\n');
    }
    Ok(())
}

fn dump_row(
    writer: Writer<'_>,
    bytes: &[u8],
    row: usize,
    group: usize,
    ascii: bool,
    out: &mut Vec<u8>,
) {
    let start = out.len();
    let shape = Shape { zero: true, width: group.saturating_mul(2), ..Shape::default() };
    for (index, bytes) in bytes.chunks(group).enumerate() {
        if index > 0 {
            out.push(b' ');
        }
        let number = writer.record.order.uint_at(bytes, 0, group).unwrap_or(0);
        digits::unsigned(out, number, Radix::Hex, shape);
    }
    if !ascii {
        return;
    }
    // Two digits for each byte, a space after each group, and one more.
    let groups = row.checked_div(group).unwrap_or(0);
    let column = row.saturating_mul(2).saturating_add(groups).saturating_add(1);
    let pad = Shape { minus: true, width: column, ..Shape::default() };
    digits::pad_text(out, start, pad);
    out.extend(bytes.iter().map(
        |&byte| {
            if byte.is_ascii_graphic() || byte == b' ' { byte } else { b'.' }
        },
    ));
}
