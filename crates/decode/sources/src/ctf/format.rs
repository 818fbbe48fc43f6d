//! Writes an event's format text as a kernel would: positions of fields, and the print fmt.

use std::fmt::Write;

use ctf::Integer;

use super::symbols;

/// Maximum named values in a print fmt.
const MAX_LABELS: usize = 64;

/// A field of a record.
pub(super) struct RecordField {
    pub(super) name: String,
    pub(super) declared: &'static str,
    pub(super) count: Option<u32>,
    pub(super) at: u16,
    pub(super) size: u16,
    pub(super) signed: bool,
    pub(super) print: Print,
}

/// How the print fmt prints a field.
pub(super) enum Print {
    Number(&'static str),
    /// By the names of its values, after masking with these bits.
    Labels(String, u64),
    Text,
    /// Numbers of this size in bytes.
    Numbers(u32),
    /// Not printed: libtraceevent assumes arrays of the byte order of its own machine.
    Nothing,
}

/// The format text of an event with these fields; `has_flags`: its header has `common_flags`.
pub(super) fn text(id: u16, name: &str, fields: &[RecordField], has_flags: bool) -> String {
    let mut text = format!("name: {name}\nID: {id}\nformat:\n");
    let field = |text: &mut String, declared: &str, at: u16, size: u16, signed: bool| {
        let signed = u8::from(signed);
        // Writing to memory cannot fail.
        let _ = writeln!(text, "\tfield:{declared};\toffset:{at};\tsize:{size};\tsigned:{signed};");
    };
    field(&mut text, "unsigned short common_type", 0, 2, false);
    if has_flags {
        field(&mut text, "unsigned char common_flags", 2, 1, false);
    }
    field(&mut text, "unsigned char common_preempt_count", 3, 1, false);
    field(&mut text, "int common_pid", 4, 4, true);
    // libtraceevent treats all fields before the first empty line as common fields.
    text.push('\n');
    for known in fields {
        let RecordField { name, declared, at, size, signed, .. } = known;
        let declared = match known.count {
            Some(count) => format!("{declared} {name}[{count}]"),
            None => format!("{declared} {name}"),
        };
        field(&mut text, &declared, *at, *size, *signed);
    }
    text + "\nprint fmt: " + &print_fmt(name, fields) + "\n"
}

fn print_fmt(name: &str, fields: &[RecordField]) -> String {
    let has = |wanted: &str| fields.iter().any(|field| field.name == wanted);
    let (mut format, mut arguments) = (Vec::new(), Vec::new());
    if let Some((text, named)) = symbols::printed(name, has) {
        format.push(text.to_owned());
        arguments.push(named);
    }
    for field in fields {
        let name = &field.name;
        let (how, argument) = match &field.print {
            Print::Number(how) => (*how, format!("REC->{name}")),
            Print::Labels(labels, u64::MAX) => {
                ("%s", format!("__print_symbolic(REC->{name}, {labels})"))
            }
            Print::Labels(labels, bits) => {
                ("%s", format!("__print_symbolic(REC->{name} & {bits:#x}, {labels})"))
            }
            Print::Text if field.count.is_some() => ("%s", format!("REC->{name}")),
            Print::Text => ("%s", format!("__get_str({name})")),
            Print::Numbers(size) => ("%s", numbers(name, field.count, *size)),
            Print::Nothing => continue,
        };
        format.push(format!("{name}={how}"));
        arguments.push(argument);
    }
    let mut print = format!("\"{}\"", format.join(" "));
    for argument in arguments {
        print.push_str(", ");
        print.push_str(&argument);
    }
    print
}

/// Prints an array as kernel print fmts do: bytes in hex, larger numbers in braces.
fn numbers(name: &str, count: Option<u32>, size: u32) -> String {
    let (place, count) = match count {
        Some(count) => (format!("REC->{name}"), count.to_string()),
        None => {
            let len = format!("__get_dynamic_array_len({name})");
            let count = if size == 1 { len } else { format!("{len} / {size}") };
            (format!("__get_dynamic_array({name})"), count)
        }
    };
    match size {
        1 => format!("__print_hex({place}, {count})"),
        _ => format!("__print_array({place}, {count}, {size})"),
    }
}

/// The C type of a field, and whether it is signed.
pub(super) fn declared(integer: &Integer, bytes: u32) -> (&'static str, bool) {
    let declared = match (bytes, integer.signed) {
        (1, false) => "u8",
        (1, true) => "s8",
        (2, false) => "u16",
        (2, true) => "s16",
        (4, false) => "u32",
        (4, true) => "s32",
        (_, false) => "u64",
        (_, true) => "s64",
    };
    (declared, integer.signed)
}

/// How a number of this size is printed: by the names of its values, if it has any.
pub(super) fn number(integer: &Integer, bytes: u32) -> Print {
    let single = |label: &&ctf::Label| label.from == label.to;
    let labels = || integer.labels.iter().flat_map(|labels| labels.iter()).filter(single);
    // libtraceevent parses no negative numbers, and does not sign-extend fields.
    let is_below = labels().take(MAX_LABELS).any(|label| label.from < 0) && bytes < 8;
    let bits = if is_below { (1 << (bytes * 8)) - 1 } else { u64::MAX };
    let value = |label: &ctf::Label| label.from as u64 & bits;
    let labels: Vec<String> = labels()
        .take(MAX_LABELS)
        .map(|label| format!("{{ {:#x}, \"{}\" }}", value(label), plain(&label.name)))
        .collect();
    if !labels.is_empty() {
        return Print::Labels(labels.join(", "), bits);
    }
    // libtraceevent does not sign-extend a field that is shorter than its conversion.
    Print::Number(match (integer, bytes) {
        (Integer { base: 16, .. }, 8) => "0x%llx",
        (Integer { base: 16, .. }, _) => "0x%x",
        (Integer { signed: true, .. }, 1) => "%hhd",
        (Integer { signed: true, .. }, 2) => "%hd",
        (Integer { signed: true, .. }, 4) => "%d",
        (Integer { signed: true, .. }, _) => "%lld",
        (_, 8) => "%llu",
        _ => "%u",
    })
}

/// A name without characters that are special in a print fmt.
fn plain(name: &str) -> String {
    let plain = |c: char| match c {
        '"' | '\\' => '\'',
        ' '..='~' => c,
        _ => '?',
    };
    name.chars().map(plain).collect()
}
