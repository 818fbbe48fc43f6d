//! The events of a text: their fields, the positions of these in records, and the formats.

use std::collections::BTreeMap;
use std::fmt::Write;

use ftrace::eventfmt::EventFormat;

use super::functions::Functions;
use super::known::{self, TEXT_REASON};
use super::line::{EventLine, Form};
use super::reasons::Reasons;
use super::template::{self, Captured};
use raw_bytes::counted;

use crate::identifier::identifier;

/// Maximum fields of an event: a line has no room for many.
const MAX_FIELDS: usize = 32;
/// Bytes before the event's fields: `common_type` to `common_pid`.
const HEAD_BYTES: u16 = 8;
/// Bytes of a thread name, including its NUL (`TASK_COMM_LEN`).
const COMM_BYTES: u16 = 16;
/// Bytes of a number, and of the position of a string.
const NUMBER_BYTES: u16 = 8;
const PLACE_BYTES: u16 = 4;
/// Names of fields with a thread name.
const COMMS: [&str; 5] = ["comm", "prev_comm", "next_comm", "child_comm", "newcomm"];
/// The field with the full text after the event's name.
const TEXT: &str = "text";

/// The type of a field, according to all lines so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    /// Some line has a value that is not a number.
    text: bool,
    negative: bool,
    /// Some line has a hexadecimal number without `0x`, so all numbers are hexadecimal.
    hex: bool,
}

/// An event of a text.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) id: u16,
    system: String,
    name: String,
    form: Form,
    templates: &'static [&'static str],
    /// Fields that are hexadecimal in raw output, too.
    hex: Vec<&'static str>,
    /// Number of lines, and of lines without a parsed field.
    lines: u64,
    empty: u64,
    /// Number of the first line without a parsed field.
    first_empty: u64,
    /// Some line has the kernel's flags.
    has_flags: bool,
    seen: BTreeMap<String, Seen>,
    /// Derived from [`Event::seen`] after all lines.
    fields: Vec<Field>,
    size: u16,
}

#[derive(Clone, Debug)]
struct Field {
    name: String,
    offset: u16,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Number { signed: bool, hex: bool },
    Comm,
    Text,
}

impl Kind {
    const fn bytes(self) -> u16 {
        match self {
            Self::Number { .. } => NUMBER_BYTES,
            Self::Comm => COMM_BYTES,
            Self::Text => PLACE_BYTES,
        }
    }
}

impl Event {
    pub(super) fn new(id: u16, system: &str, form: Form, name: &str) -> Self {
        let templates = match form {
            Form::SyscallExit => known::SYSCALL_EXIT,
            Form::SyscallEnter | Form::Plain => known::templates(name),
        };
        Self {
            id,
            system: system.to_owned(),
            name: form.prefix().to_owned() + name,
            form,
            templates,
            hex: template::hexadecimal_fields(templates),
            lines: 0,
            empty: 0,
            first_empty: 0,
            has_flags: false,
            seen: BTreeMap::new(),
            fields: Vec::new(),
            size: HEAD_BYTES,
        }
    }

    pub(super) fn system(&self) -> &str {
        &self.system
    }

    /// Calls `take` with each field of a line.
    fn each_field<'t>(&self, body: &'t str, mut take: impl FnMut(&str, Captured<'t>)) {
        let mut take = |name: &str, value: Captured<'t>| {
            if let Some(address) = known::address_field(&self.system, name)
                && let Captured::Comm(function)
                | Captured::Text(function)
                | Captured::Number(_, function) = value
            {
                take(address, Captured::Function(function));
            }
            take(name, value);
        };
        let body = without_notes(body);
        // trace-cmd's raw output, and the kernel's with the option `fields`.
        let is_raw = template::begins_with_pair(body);
        if self.form == Form::SyscallEnter && !is_raw {
            return template::arguments(body).for_each(|(name, value)| take(name, value));
        }
        let mut templates =
            self.templates.iter().filter(|form| !is_raw || template::has_pairs(form));
        match templates.find_map(|template| template::matched(template, body)) {
            Some(captures) => captures.into_iter().for_each(|(name, value)| take(name, value)),
            None => {
                template::pairs(body).for_each(|(name, value)| take(name, self.based(name, value)))
            }
        }
    }

    /// Converts the value of a pair if its field is hexadecimal.
    fn based<'t>(&self, name: &str, value: Captured<'t>) -> Captured<'t> {
        let (Captured::Number(_, shown) | Captured::Text(shown)) = value else { return value };
        let hex = self.hex.contains(&name).then(|| template::hexadecimal(shown)).flatten();
        hex.map_or(value, |number| Captured::Number(number.into(), shown))
    }

    /// A note about lines without a parsed field, if other lines of the event have fields.
    pub(super) fn note(&self) -> Option<String> {
        let Self { system, name, lines, empty, first_empty, .. } = self;
        let counted = counted(*lines, "line", "lines");
        let which = match lines.saturating_sub(*empty) {
            0 => format!("none of the {counted} of {system}:{name} could be read"),
            _ => format!("{empty} of the {counted} of {system}:{name} could not be read"),
        };
        let note = format!(
            "{which} beyond thread, CPU and time: the text is not laid out as kernels and trace-cmd print it; \
             the first is line {first_empty}"
        );
        let is_known = matches!(system.as_str(), "kvm" | "sched") && !self.templates.is_empty();
        (*empty > 0 && is_known).then_some(note)
    }

    /// Adds the fields of a line to the event.
    pub(super) fn look_at(
        &mut self,
        number: u64,
        line: &EventLine<'_>,
        (reasons, functions): (&mut Reasons, &mut Functions),
    ) {
        self.has_flags |= line.flags.is_some();
        let mut found = false;
        let mut seen = std::mem::take(&mut self.seen);
        self.each_field(line.body, |name, value| {
            if name == TEXT || name.starts_with("common_") {
                return;
            }
            found = true;
            if let Captured::Reason(reason) = value {
                reasons.add(reason);
            }
            if let Captured::Function(function) = value {
                functions.add(function);
            }
            if seen.len() >= MAX_FIELDS && !seen.contains_key(name) {
                return;
            }
            let field = match seen.get_mut(name) {
                Some(field) => field,
                None => seen.entry(name.to_owned()).or_default(),
            };
            match value {
                Captured::Number(number, _) => field.negative |= number < 0,
                Captured::Reason(_) | Captured::Function(_) => {}
                Captured::Text(text) if is_bare_hex(text) => field.hex = true,
                Captured::Comm(_) | Captured::Text(_) => field.text = true,
            }
        });
        self.seen = seen;
        self.lines += 1;
        if !found {
            self.first_empty = if self.empty == 0 { number } else { self.first_empty };
            self.empty += 1;
        }
    }

    /// Assigns each field its position, after all lines.
    pub(super) fn lay_out(&mut self) {
        let mut offset = HEAD_BYTES;
        for (name, seen) in &self.seen {
            let kind = match seen {
                _ if COMMS.contains(&name.as_str()) => Kind::Comm,
                Seen { text: true, .. } => Kind::Text,
                Seen { negative, hex, .. } => {
                    Kind::Number { signed: *negative, hex: *hex && !*negative }
                }
            };
            self.fields.push(Field { name: name.clone(), offset, kind });
            offset = offset.saturating_add(kind.bytes());
        }
        self.fields.push(Field { name: TEXT.to_owned(), offset, kind: Kind::Text });
        self.size = offset.saturating_add(PLACE_BYTES);
    }

    /// The event's format, as a kernel would write it.
    pub(super) fn format(&self, reasons: &Reasons) -> Option<EventFormat> {
        let text = self.format_text(&self.name, reasons);
        EventFormat::parse(&self.system, text.as_bytes()).ok()
    }

    /// [`Event::format`] for files for other programs: libtraceevent requires event names that are
    /// C identifiers.
    pub(super) fn exported_format_text(&self, reasons: &Reasons) -> String {
        self.format_text(&identifier(&self.name), reasons)
    }

    fn format_text(&self, name: &str, reasons: &Reasons) -> String {
        let mut text = format!("name: {name}\nID: {}\nformat:\n", self.id);
        let field = |text: &mut String, declared: &str, offset: u16, size: u16, signed: bool| {
            let signed = u8::from(signed);
            // Writing to memory cannot fail.
            let _ = writeln!(
                text,
                "\tfield:{declared};\toffset:{offset};\tsize:{size};\tsigned:{signed};"
            );
        };
        field(&mut text, "unsigned short common_type", 0, 2, false);
        if self.has_flags {
            field(&mut text, "unsigned char common_flags", 2, 1, false);
        }
        field(&mut text, "unsigned char common_preempt_count", 3, 1, false);
        field(&mut text, "int common_pid", 4, 4, true);
        // libtraceevent treats all fields before the first empty line as common fields.
        text.push('\n');
        for Field { name, offset, kind } in &self.fields {
            let (declared, signed) = match kind {
                Kind::Number { signed: true, .. } => (format!("s64 {name}"), true),
                Kind::Number { signed: false, .. } => (format!("u64 {name}"), false),
                Kind::Comm => (format!("char {name}[{COMM_BYTES}]"), false),
                Kind::Text => (format!("__data_loc char[] {name}"), false),
            };
            field(&mut text, &declared, *offset, kind.bytes(), signed);
        }
        text + "\nprint fmt: " + &self.print_fmt(reasons) + "\n"
    }

    /// Prints the original line. The print fmt contains the names of reasons, for analyses that
    /// search it for them.
    fn print_fmt(&self, reasons: &Reasons) -> String {
        if self.fields.iter().any(|field| field.name == TEXT_REASON) {
            let symbols = reasons.symbols();
            format!(
                "\"%s%.0s\", __get_str({TEXT}), __print_symbolic(REC->{TEXT_REASON}, {symbols})"
            )
        } else {
            format!("\"%s\", __get_str({TEXT})")
        }
    }

    /// Appends the record of a line.
    pub(super) fn write(
        &self,
        line: &EventLine<'_>,
        names: (&Reasons, &Functions),
        out: &mut Vec<u8>,
    ) {
        let begin = out.len();
        out.extend_from_slice(&self.id.to_le_bytes());
        out.extend_from_slice(&[line.flags.unwrap_or(0), 0]);
        out.extend_from_slice(&line.thread.to_le_bytes());
        out.resize(begin + usize::from(self.size), 0);
        self.each_field(line.body, |name, value| {
            let Ok(at) = self.fields.binary_search_by(|field| self.order(field, name)) else {
                return;
            };
            if let Some(field) = self.fields.get(at) {
                field.write(value, names, begin, out);
            }
        });
        if let Some(field) = self.fields.last() {
            field.write(Captured::Text(line.body), names, begin, out);
        }
        // Records have whole words.
        out.resize(begin + (out.len() - begin).next_multiple_of(4), 0);
    }

    /// Fields are sorted by name, except the last.
    fn order(&self, field: &Field, name: &str) -> std::cmp::Ordering {
        if std::ptr::eq(field, self.fields.last().unwrap_or(field)) {
            return std::cmp::Ordering::Greater;
        }
        field.name.as_str().cmp(name)
    }
}

/// Removes the errors that trace-cmd's plugins print before the kernel's text if a field is
/// missing.
fn without_notes(body: &str) -> &str {
    let mut rest = body;
    loop {
        let behind = rest
            .strip_prefix("<CANT FIND FIELD ")
            .and_then(|rest| rest.split_once('>'))
            .or_else(|| rest.strip_prefix("CAN'T FIND FIELD \"")?.split_once('"'));
        match behind {
            Some((_, behind)) => rest = behind,
            None => return rest.trim_start(),
        }
    }
}

/// Whether a text is a hexadecimal number without `0x`, not a word made of such letters.
fn is_bare_hex(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit()) && template::hexadecimal(text).is_some()
}

impl Field {
    fn write(
        &self,
        value: Captured<'_>,
        names: (&Reasons, &Functions),
        begin: usize,
        out: &mut Vec<u8>,
    ) {
        let (reasons, functions) = names;
        let at = begin + usize::from(self.offset);
        match (self.kind, value) {
            (
                Kind::Number { hex: true, .. },
                Captured::Number(_, shown) | Captured::Text(shown),
            ) => {
                put(out, at, &template::hexadecimal(shown).unwrap_or(0).to_le_bytes());
            }
            (Kind::Number { .. }, Captured::Number(number, _)) => {
                // The low 64 bits of a signed or unsigned number.
                let bytes = (number as u64).to_le_bytes();
                put(out, at, &bytes);
            }
            (Kind::Number { .. }, Captured::Reason(reason)) => {
                put(out, at, &reasons.number(reason).to_le_bytes());
            }
            (Kind::Number { .. }, Captured::Function(function)) => {
                put(out, at, &functions.address(function).to_le_bytes());
            }
            (Kind::Comm, Captured::Comm(text) | Captured::Text(text)) => {
                let max = usize::from(COMM_BYTES) - 1;
                put(out, at, text.as_bytes().get(..max).unwrap_or(text.as_bytes()));
            }
            (Kind::Comm, Captured::Number(_, shown)) => {
                self.write(Captured::Comm(shown), names, begin, out);
            }
            (Kind::Text, Captured::Text(text) | Captured::Comm(text)) => {
                put_text(out, begin, at, text);
            }
            (Kind::Text, Captured::Number(_, shown)) => put_text(out, begin, at, shown),
            _ => {}
        }
    }
}

fn put(out: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(to) = out.get_mut(at..at + bytes.len()) {
        to.copy_from_slice(bytes);
    }
}

/// Appends a string with its NUL, and stores its position and length in the field.
fn put_text(out: &mut Vec<u8>, begin: usize, at: usize, text: &str) {
    let (Ok(place), Ok(len)) = (u16::try_from(out.len() - begin), u16::try_from(text.len() + 1))
    else {
        return;
    };
    out.extend_from_slice(text.as_bytes());
    out.push(0);
    let place = u32::from(len) << 16 | u32::from(place);
    put(out, at, &place.to_le_bytes());
}
