//! Sizes, alignments and offsets of the C types in trace events.

use raw_bytes::{Abi, LongSize};

use crate::format::Field;
use crate::machine::Machine;

/// Size in bytes and signedness of a C type, spelled as in kernel headers.
fn scalar(machine: Machine, abi: Abi, c_type: &str) -> (usize, bool) {
    let long = if abi.long == LongSize::Four { 4 } else { 8 };
    match c_type {
        // Plain char is signed on x86 only.
        "char" => (1, machine == Machine::X86),
        "bool" | "u8" | "__u8" | "unsigned char" => (1, false),
        "u16" | "__u16" | "unsigned short" => (2, false),
        "u32" | "dev_t" | "__u32" | "unsigned int" => (4, false),
        "int" | "pid_t" => (4, true),
        "u64" | "__u64" | "sector_t" | "unsigned long long" => (8, false),
        "long" => (long, true),
        "unsigned long" | "void *" => (long, false),
        other => panic!("no C type `{other}` is known"),
    }
}

/// Lays out `fields` (C type and name) from offset `at` on, as a C compiler lays out a struct.
/// Numbers of 8 bytes are aligned to 8 even with 4-byte longs, as on 32-bit Arm and unlike 32-bit
/// x86.
pub(crate) fn fields(
    machine: Machine,
    abi: Abi,
    mut at: usize,
    fields: &[(&str, &str)],
) -> Vec<Field> {
    let mut laid_out = Vec::new();
    for &(c_type, declarator) in fields {
        let field = field(machine, abi, at, c_type, declarator);
        at = field.offset + field.size;
        laid_out.push(field);
    }
    laid_out
}

fn field(machine: Machine, abi: Abi, at: usize, c_type: &str, declarator: &str) -> Field {
    if let Some(element) = c_type.strip_prefix("__data_loc ") {
        let (_, signed) = scalar(machine, abi, element.trim_end_matches("[]"));
        return Field::new(c_type, declarator, at.next_multiple_of(4), 4, 4, signed);
    }
    let (element, signed) = scalar(machine, abi, c_type);
    let offset = at.next_multiple_of(element);
    Field::new(c_type, declarator, offset, element * count(declarator), element, signed)
}

/// Number of elements of `name[16]`; 1 for a plain name.
fn count(declarator: &str) -> usize {
    match declarator.trim_end_matches(']').split_once('[') {
        None => 1,
        Some((_, count)) => count.parse().unwrap_or_else(|_| panic!("`{declarator}` has no count")),
    }
}
