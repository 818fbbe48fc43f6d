//! Events as comma-separated values: a table that data frames and databases read directly.

use std::io::{self, Write};

use ftrace::eventfmt::{EventFormat, Value, append_decimal};
use raw_bytes::ByteOrder;

use super::jsonl::{self, JsonEvent};

/// The event name of a line that stands for dropped events.
const LOST: &str = "lost_events";

/// Writes the names of the columns.
pub(super) fn write_heading(
    out: &mut dyn Write,
    nanoseconds: bool,
    columns: &[String],
) -> io::Result<()> {
    let mut line: Vec<u8> = if nanoseconds { "ts_ns" } else { "ts_cycles" }.into();
    line.extend_from_slice(b",machine,level,cpu,pid,comm,event");
    if columns.is_empty() {
        line.extend_from_slice(b",fields");
    }
    for column in columns {
        line.push(b',');
        text(&mut line, column.as_bytes());
    }
    line.push(b'\n');
    out.write_all(&line)
}

/// Shared parts of all events of a recording.
#[derive(Debug)]
pub(super) struct CsvParts {
    machine: Box<[u8]>,
}

impl CsvParts {
    pub(super) fn new(machine: &str, level: u32) -> Self {
        let mut part = vec![b','];
        text(&mut part, machine.as_bytes());
        part.extend_from_slice(format!(",{level},").as_bytes());
        Self { machine: part.into() }
    }

    /// Writes the line up to its CPU, inclusive.
    pub(super) fn begin(&self, out: &mut Vec<u8>, stamp_ns: u64, cpu: u32) {
        append_decimal(out, stamp_ns);
        out.extend_from_slice(&self.machine);
        append_decimal(out, u64::from(cpu));
    }
}

/// Writes the thread up to its name.
pub(super) fn thread(out: &mut Vec<u8>, pid: u32) {
    out.push(b',');
    append_decimal(out, u64::from(pid));
    out.push(b',');
}

/// Writes event and fields, and ends the line.
pub(super) fn event(
    out: &mut Vec<u8>,
    (format, json, name): (Option<&EventFormat>, Option<&JsonEvent<'_>>, &str),
    record: &[u8],
    order: ByteOrder,
    columns: &[String],
) {
    out.push(b',');
    text(out, name.as_bytes());
    if columns.is_empty() {
        let mut fields = Vec::new();
        match json {
            Some(json) => json.write_fields(&mut fields, record, order),
            None => fields.extend_from_slice(b"{}"),
        }
        out.push(b',');
        text(out, &fields);
    }
    for column in columns {
        out.push(b',');
        let field = format.and_then(|format| format.field(column));
        match field.and_then(|field| field.value(record, order)) {
            None => {}
            Some(Value::Text(bytes)) => text(out, bytes),
            Some(number @ (Value::Unsigned(_) | Value::Signed(_) | Value::Pointer(_))) => {
                jsonl::value(out, Some(number), order);
            }
            Some(other) => {
                let mut value = Vec::new();
                jsonl::value(&mut value, Some(other), order);
                text(out, &value);
            }
        }
    }
    out.push(b'\n');
}

/// Writes a line for dropped events, with their number if the kernel counted them.
pub(super) fn dropped(out: &mut Vec<u8>, count: Option<u64>, columns: &[String]) {
    out.extend_from_slice(b",,,");
    out.extend_from_slice(LOST.as_bytes());
    if columns.is_empty() {
        let count = count.map_or_else(|| "null".to_owned(), |count| count.to_string());
        out.push(b',');
        text(out, format!("{{\"lost\":{count}}}").as_bytes());
    }
    out.extend(columns.iter().map(|_| b','));
    out.push(b'\n');
}

/// Writes a text, quoted if necessary, and such that no spreadsheet takes it for a formula; invalid UTF-8 becomes
/// U+FFFD.
pub(super) fn text(out: &mut Vec<u8>, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let text = printable::csv_cell(&text);
    if !text.contains([',', '"', '\n', '\r']) {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    out.push(b'"');
    out.extend_from_slice(text.replace('"', "\"\"").as_bytes());
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_text() {
        let cell = |bytes: &[u8]| {
            let mut out = Vec::new();
            text(&mut out, bytes);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(cell(b"=HYPERLINK(1,2)"), "\"'=HYPERLINK(1,2)\"");
        assert_eq!(cell(b"@a"), "'@a");
        assert_eq!(cell(b"-5"), "-5");
    }

    #[test]
    fn texts_are_quoted_where_they_must_be() {
        let line = |texts: &[&[u8]]| {
            let mut out = Vec::new();
            for (at, cell) in texts.iter().enumerate() {
                out.extend(std::iter::repeat_n(b',', at.min(1)));
                text(&mut out, cell);
            }
            out
        };
        let texts: [&[u8]; 4] = [b"CPU 0/KVM", b"a,b", b"\"\r\n", b"\xff"];
        let line = line(&texts);
        let mut reader =
            ::csv::ReaderBuilder::new().has_headers(false).from_reader(line.as_slice());
        let back = reader.records().next().unwrap().unwrap();
        assert!(back.iter().eq(["CPU 0/KVM", "a,b", "\"\r\n", "\u{fffd}"]), "{back:?}");
    }
}
