//! The format of an event's records, as a kernel would write it: where fields are, and how they are printed.

use std::fmt::Write;

use ctf::Integer;

use super::symbols;

/// Names of values that a print fmt has, at most.
const MOST_LABELS: usize = 64;

/// A field that a record has.
pub(super) struct Known {
    pub(super) name: String,
    pub(super) declared: &'static str,
    pub(super) count: Option<u32>,
    pub(super) at: u16,
    pub(super) size: u16,
    pub(super) signed: bool,
    pub(super) print: Print,
}

/// How the print fmt has a field.
pub(super) enum Print {
    Number(&'static str),
    Labels(String),
    Text,
    Bytes,
}

/// The format of an event with these fields; `has_flags`: its head has `common_flags`.
pub(super) fn text(id: u16, name: &str, fields: &[Known], has_flags: bool) -> String {
    let mut text = format!("name: {name}\nID: {id}\nformat:\n");
    let mut field = |declared: &str, at: u16, size: u16, signed: bool| {
        let signed = u8::from(signed);
        // Writing to memory can't fail.
        let _ = writeln!(text, "\tfield:{declared};\toffset:{at};\tsize:{size};\tsigned:{signed};");
    };
    field("unsigned short common_type", 0, 2, false);
    if has_flags {
        field("unsigned char common_flags", 2, 1, false);
    }
    field("unsigned char common_preempt_count", 3, 1, false);
    field("int common_pid", 4, 4, true);
    for known in fields {
        let Known { name, declared, at, size, signed, .. } = known;
        let declared = match known.count {
            Some(count) => format!("{declared} {name}[{count}]"),
            None => format!("{declared} {name}"),
        };
        field(&declared, *at, *size, *signed);
    }
    text + "\nprint fmt: " + &print_fmt(name, fields) + "\n"
}

fn print_fmt(name: &str, fields: &[Known]) -> String {
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
            Print::Labels(labels) => ("%s", format!("__print_symbolic(REC->{name}, {labels})")),
            Print::Text if field.count.is_some() => ("%s", format!("REC->{name}")),
            Print::Text => ("%s", format!("__get_str({name})")),
            Print::Bytes => continue,
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

/// The type of a field as C has it, and whether it is signed.
pub(super) fn declared(of: &Integer, bytes: u32) -> (&'static str, bool) {
    let declared = match (bytes, of.signed) {
        (1, false) => "u8",
        (1, true) => "s8",
        (2, false) => "u16",
        (2, true) => "s16",
        (4, false) => "u32",
        (4, true) => "s32",
        (_, false) => "u64",
        (_, true) => "s64",
    };
    (declared, of.signed)
}

/// How a number is printed: by the names of its values, if it has any.
pub(super) fn number(one: &Integer) -> Print {
    let single = |label: &&ctf::Label| label.from == label.to && label.from >= 0;
    let labels = one.labels.iter().flat_map(|labels| labels.iter()).filter(single);
    let plain = |name: &str| name.replace(['"', '\\'], "'");
    let labels: Vec<String> = labels
        .take(MOST_LABELS)
        .map(|label| format!("{{ {:#x}, \"{}\" }}", label.from, plain(&label.name)))
        .collect();
    if !labels.is_empty() {
        return Print::Labels(labels.join(", "));
    }
    Print::Number(match one {
        Integer { base: 16, .. } => "0x%llx",
        Integer { signed: true, .. } => "%lld",
        _ => "%llu",
    })
}
