//! A print fmt with a record; the fields have the names that the print fmt uses.
//!
//! The first byte selects byte order and long size; with bit 2 set, the text is the format string
//! of a `trace_printk`. Eight bytes select the types of the fields; the text ends at the first NUL,
//! and the record follows.

use std::fmt::Write as _;

use ftrace::eventfmt::EventFormat;

use crate::format::{abi, split_nul};
use crate::printing::Kernel;

/// Flag: the text is the format string of a `trace_printk`.
pub(crate) const BINARY: u8 = 4;

/// Field types: text before the name, text after it, and size in the record.
pub(crate) const TYPES: [(&str, &str, usize); 16] = [
    ("u64", "", 8),
    ("unsigned int", "", 4),
    ("int", "", 4),
    ("u16", "", 2),
    ("u8", "", 1),
    ("bool", "", 1),
    ("s64", "", 8),
    ("unsigned long", "", 8),
    ("const char *", "", 8),
    ("__data_loc char[]", "", 4),
    ("__data_loc u8[]", "", 4),
    ("__rel_loc u32[]", "", 4),
    ("char", "[16]", 16),
    ("u8", "[15]", 15),
    ("unsigned long", "[2]", 16),
    ("struct in6_addr", "", 16),
];

/// Compiles the print fmt and prints the record.
pub fn run(bytes: &[u8]) {
    let Some((&[flags, ref kinds @ ..], rest)) = bytes.split_first_chunk::<9>() else { return };
    let (text, record) = split_nul(rest);
    let kernel = Kernel::new(abi(flags), text);
    let format = if flags & BINARY == 0 {
        synthetic_format(text, kinds)
    } else {
        BPRINT.as_bytes().to_vec()
    };
    let system = if flags & BINARY == 0 { "kvm" } else { "ftrace" };
    let Ok(format) = EventFormat::parse(system, &format) else { return };
    kernel.print(&format, record);
    let short = record.get(..record.len() / 2).unwrap_or_default();
    kernel.print(&format, short);
}

const BPRINT: &str = "name: bprint\nID: 6\n\
    field:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;\n\
    field:const char * fmt;\toffset:16;\tsize:8;\tsigned:0;\n\
    field:u32 buf[];\toffset:24;\tsize:0;\tsigned:0;\n\n\
    print fmt: \"%ps: %s\", (void *)REC->ip, REC->fmt\n";

/// A format with the fields that the print fmt uses.
fn synthetic_format(print_fmt: &[u8], kinds: &[u8]) -> Vec<u8> {
    let print_fmt = String::from_utf8_lossy(print_fmt);
    let mut text = String::from("name: own\nID: 1\n");
    let mut at = 8;
    for (name, kind) in names(&print_fmt).into_iter().zip(kinds.iter().cycle()) {
        let (before, behind, size) = TYPES[usize::from(*kind) % TYPES.len()];
        let _ = writeln!(text, "\tfield:{before} {name}{behind};\toffset:{at};\tsize:{size};");
        at += size;
    }
    text.push_str("\nprint fmt: ");
    text.push_str(&print_fmt);
    text.into_bytes()
}

/// Names of the fields that a print fmt uses, without duplicates, in order.
pub(crate) fn names(print_fmt: &str) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for mark in ["REC->", "__get_str(", "array(", "array_len(", "bitmask(", "__get_sockaddr("] {
        for (at, _) in print_fmt.match_indices(mark) {
            let rest = &print_fmt[at + mark.len()..];
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let name = &rest[..end.unwrap_or(rest.len())];
            if !name.is_empty() && !names.contains(&name) && names.len() < 64 {
                names.push(name);
            }
        }
    }
    names
}
