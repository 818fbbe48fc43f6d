//! One JSON object per event, written without building it in memory first.

use eventfmt::{EventFormat, Value};
use raw_bytes::ByteOrder;

use super::text::decimal;

/// What is the same for all events of a recording, as JSON text.
#[derive(Debug)]
pub(super) struct JsonParts {
    /// `","machine":"host","level":0,"cpu":` after the time.
    machine: Box<[u8]>,
    time_key: &'static [u8],
}

impl JsonParts {
    pub(super) fn new(machine: &str, level: u32, nanoseconds: bool) -> Self {
        let mut text = b",\"machine\":".to_vec();
        string(&mut text, machine.as_bytes());
        text.extend_from_slice(format!(",\"level\":{level},\"cpu\":").as_bytes());
        let time_key: &[u8] = if nanoseconds { b"{\"ts_ns\":" } else { b"{\"ts_cycles\":" };
        Self { machine: text.into(), time_key }
    }

    /// Writes the object up to and without its own keys.
    pub(super) fn begin(&self, out: &mut Vec<u8>, stamp_ns: u64, cpu: u32) {
        out.extend_from_slice(self.time_key);
        decimal(out, stamp_ns, 1, b' ');
        out.extend_from_slice(&self.machine);
        decimal(out, u64::from(cpu), 1, b' ');
    }
}

/// Writes the thread up to its name.
pub(super) fn thread(out: &mut Vec<u8>, pid: u32) {
    out.extend_from_slice(b",\"pid\":");
    decimal(out, u64::from(pid), 1, b' ');
    out.extend_from_slice(b",\"comm\":");
}

/// Writes event and fields, and ends the object.
pub(super) fn event(
    out: &mut Vec<u8>,
    (format, name): (Option<&EventFormat>, &str),
    record: &[u8],
    order: ByteOrder,
) {
    out.extend_from_slice(b",\"event\":");
    string(out, name.as_bytes());
    out.extend_from_slice(b",\"fields\":");
    fields(out, format, record, order);
    out.extend_from_slice(b"}\n");
}

/// Writes event and its text, and ends the object.
pub(super) fn text(out: &mut Vec<u8>, name: &str, text: &[u8]) {
    out.extend_from_slice(b",\"event\":");
    string(out, name.as_bytes());
    out.extend_from_slice(b",\"text\":");
    string(out, text.trim_ascii());
    out.extend_from_slice(b"}\n");
}

/// Writes all fields as an object.
pub(super) fn fields(
    out: &mut Vec<u8>,
    format: Option<&EventFormat>,
    record: &[u8],
    order: ByteOrder,
) {
    out.push(b'{');
    for (at, field) in format.map(EventFormat::fields).unwrap_or(&[]).iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        string(out, field.name.as_bytes());
        out.push(b':');
        value(out, field.value(record, order), order);
    }
    out.push(b'}');
}

/// Writes that events were dropped.
pub(super) fn dropped(out: &mut Vec<u8>, count: Option<u64>) {
    out.extend_from_slice(b",\"lost\":");
    match count {
        Some(count) => decimal(out, count, 1, b' '),
        None => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(b"}\n");
}

/// Writes a field's value; null when the record is too short to hold it.
pub(super) fn value(out: &mut Vec<u8>, value: Option<Value<'_>>, order: ByteOrder) {
    match value {
        None => out.extend_from_slice(b"null"),
        Some(Value::Unsigned(number) | Value::Pointer(number)) => decimal(out, number, 1, b' '),
        Some(Value::Signed(number)) => signed(out, number),
        Some(Value::Bool(yes)) => out.extend_from_slice(if yes { b"true" } else { b"false" }),
        Some(Value::Text(text)) => string(out, text),
        Some(Value::Array(elements)) => {
            out.push(b'[');
            for (at, number) in elements.numbers(order).enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                if elements.signed {
                    signed(out, number);
                } else {
                    decimal(out, number.cast_unsigned(), 1, b' ');
                }
            }
            out.push(b']');
        }
    }
}

fn signed(out: &mut Vec<u8>, number: i64) {
    if number < 0 {
        out.push(b'-');
    }
    decimal(out, number.unsigned_abs(), 1, b' ');
}

/// Writes a JSON string; bytes that are no UTF-8 become U+FFFD.
pub(super) fn string(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    for one in String::from_utf8_lossy(bytes).chars() {
        match one {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\t' => out.extend_from_slice(b"\\t"),
            ' '..='~' => out.push(one as u8),
            one if (one as u32) < 0x20 => {
                out.extend_from_slice(format!("\\u{:04x}", one as u32).as_bytes());
            }
            // Escaped where a terminal would obey it.
            one => out.extend_from_slice(printable::json(one.encode_utf8(&mut [0; 4])).as_bytes()),
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped() {
        let mut out = Vec::new();
        string(&mut out, b"a\"b\\\n\x01\xff");
        let back: String = serde_json::from_slice(&out).unwrap();
        assert_eq!(back, "a\"b\\\n\u{1}\u{fffd}");
    }
}
