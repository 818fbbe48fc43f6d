//! One JSON object per event, written without building it in memory first.

use ftrace::eventfmt::{
    EventFormat, Field, FieldKind, NumberAt, NumberForm, Value, append_decimal,
};
use raw_bytes::ByteOrder;

use super::line_batch::{EventStart, LineBatch};

/// Shared parts of all events of a recording, as JSON text.
#[derive(Debug)]
pub(super) struct JsonParts {
    /// `","machine":"host","level":0,"cpu":` after the time.
    machine: Box<[u8]>,
    time_key: &'static [u8],
}

/// Shared parts of all events of one format, as JSON text, and how to read the rest.
#[derive(Debug)]
pub(super) struct JsonEvent<'f> {
    /// `,"event":"kvm:kvm_exit","fields":` after the thread.
    begin: Box<[u8]>,
    fields: Vec<JsonField<'f>>,
}

/// One field of a format.
#[derive(Debug)]
struct JsonField<'f> {
    /// `"vcpu_id":`, with a comma before it if it isn't the first.
    key: Box<[u8]>,
    field: &'f Field,
    /// The field, if it is an integer.
    integer: Option<NumberAt>,
}

impl<'f> JsonEvent<'f> {
    pub(super) fn new(format: &'f EventFormat, full_name: &str) -> Self {
        let fields = format.fields().iter().enumerate();
        Self { fields: fields.map(JsonField::new).collect(), ..Self::without_fields(full_name) }
    }

    /// Events whose field values are not needed.
    pub(super) fn without_fields(full_name: &str) -> Self {
        let mut begin = b",\"event\":".to_vec();
        string(&mut begin, full_name.as_bytes());
        begin.extend_from_slice(b",\"fields\":");
        Self { begin: begin.into(), fields: Vec::new() }
    }

    /// Writes event and fields, and ends the object.
    #[inline]
    pub(super) fn write(&self, out: &mut Vec<u8>, record: &[u8], order: ByteOrder) {
        out.extend_from_slice(&self.begin);
        self.write_fields(out, record, order);
        out.extend_from_slice(b"}\n");
    }

    /// Writes all fields as an object.
    #[inline]
    pub(super) fn write_fields(&self, out: &mut Vec<u8>, record: &[u8], order: ByteOrder) {
        out.push(b'{');
        self.fields.iter().for_each(|field| field.write(out, record, order));
        out.push(b'}');
    }
}

impl<'f> JsonField<'f> {
    fn new((at, field): (usize, &'f Field)) -> Self {
        let mut key = if at > 0 { b",".to_vec() } else { Vec::new() };
        string(&mut key, field.name.as_bytes());
        key.push(b':');
        let integer = match field.kind {
            // An address is unsigned, whatever its type says.
            FieldKind::Number(NumberForm::Pointer) => {
                field.number().map(|at| NumberAt { signed: false, ..at })
            }
            FieldKind::Number(NumberForm::Integer | NumberForm::Long) => field.number(),
            _ => None,
        };
        Self { key: key.into(), field, integer }
    }

    #[inline]
    fn write(&self, out: &mut Vec<u8>, record: &[u8], order: ByteOrder) {
        out.extend_from_slice(&self.key);
        let number = self.integer.and_then(|at| Some((at.signed, at.read_signed(record, order)?)));
        match number {
            Some((true, number)) => signed(out, number),
            Some((false, number)) => append_decimal(out, number.cast_unsigned()),
            None => value(out, self.field.value(record, order), order),
        }
    }
}

impl JsonParts {
    pub(super) fn new(machine: &str, level: u32, nanoseconds: bool) -> Self {
        let mut text = b",\"machine\":".to_vec();
        string(&mut text, machine.as_bytes());
        text.extend_from_slice(format!(",\"level\":{level},\"cpu\":").as_bytes());
        let time_key: &[u8] = if nanoseconds { b"{\"ts_ns\":" } else { b"{\"ts_cycles\":" };
        Self { machine: text.into(), time_key }
    }

    /// Writes the object up to its thread's name, which is `comm` if the recording has it.
    #[inline]
    pub(super) fn begin<'c>(
        &self,
        batch: &mut LineBatch,
        EventStart { stamp_ns, cpu, pid }: EventStart,
        comm: impl FnOnce() -> Option<&'c str>,
    ) {
        self.time(&mut batch.text, stamp_ns);
        let key = (pid, cpu, None);
        if !batch.start.is_of(key) {
            let Some(comm) = comm() else {
                // Each line has its own blank, so it shares no beginning with others.
                self.thread(&mut batch.text, cpu, pid);
                let (line, at) = ((batch.lines.len(), pid), batch.text.len());
                let names = batch.names.get_or_insert_default();
                names.write(line, at, &mut batch.text, || b"null");
                return;
            };
            let mut start = batch.start.restart();
            self.thread(&mut start, cpu, pid);
            string(&mut start, comm.as_bytes());
            batch.start.set(key, start);
        }
        batch.text.extend_from_slice(batch.start.text());
    }

    fn thread(&self, out: &mut Vec<u8>, cpu: u32, pid: u32) {
        self.cpu(out, cpu);
        out.extend_from_slice(b",\"pid\":");
        append_decimal(out, u64::from(pid));
        out.extend_from_slice(b",\"comm\":");
    }

    fn time(&self, out: &mut Vec<u8>, stamp_ns: u64) {
        out.extend_from_slice(self.time_key);
        append_decimal(out, stamp_ns);
    }

    fn cpu(&self, out: &mut Vec<u8>, cpu: u32) {
        out.extend_from_slice(&self.machine);
        append_decimal(out, u64::from(cpu));
    }

    /// Writes that events were dropped.
    pub(super) fn dropped(
        &self,
        out: &mut Vec<u8>,
        (stamp_ns, cpu): (u64, u32),
        count: Option<u64>,
    ) {
        self.time(out, stamp_ns);
        self.cpu(out, cpu);
        out.extend_from_slice(b",\"lost\":");
        match count {
            Some(count) => append_decimal(out, count),
            None => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(b"}\n");
    }
}

/// Writes an event without a format, and ends the object.
pub(super) fn unknown(out: &mut Vec<u8>, name: &str) {
    out.extend_from_slice(b",\"event\":");
    string(out, name.as_bytes());
    out.extend_from_slice(b",\"fields\":{}}\n");
}

/// Writes an event and its text, and ends the object.
pub(super) fn text(out: &mut Vec<u8>, name: &str, text: &[u8]) {
    out.extend_from_slice(b",\"event\":");
    string(out, name.as_bytes());
    out.extend_from_slice(b",\"text\":");
    string(out, text.trim_ascii());
    out.extend_from_slice(b"}\n");
}

/// Writes a field's value; null when the record is too short to hold it.
pub(super) fn value(out: &mut Vec<u8>, value: Option<Value<'_>>, order: ByteOrder) {
    match value {
        None => out.extend_from_slice(b"null"),
        Some(Value::Unsigned(number) | Value::Pointer(number)) => append_decimal(out, number),
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
                    append_decimal(out, number.cast_unsigned());
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
    append_decimal(out, number.unsigned_abs());
}

/// Writes a JSON string; invalid UTF-8 becomes U+FFFD.
pub(super) fn string(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    if bytes.iter().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\')) {
        out.extend_from_slice(bytes);
        out.push(b'"');
        return;
    }
    for character in String::from_utf8_lossy(bytes).chars() {
        match character {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\t' => out.extend_from_slice(b"\\t"),
            ' '..='~' => out.push(character as u8),
            control if (control as u32) < 0x20 => {
                out.extend_from_slice(format!("\\u{:04x}", control as u32).as_bytes());
            }
            // Escapes characters that control a terminal.
            other => {
                out.extend_from_slice(printable::json(other.encode_utf8(&mut [0; 4])).as_bytes())
            }
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

    #[test]
    fn numbers_have_the_sign_of_their_type_and_addresses_none() {
        let text = "name: e\nID: 7\nformat:\n\
            \tfield:int delta;\toffset:0;\tsize:4;\tsigned:1;\n\
            \tfield:void * at;\toffset:8;\tsize:8;\tsigned:1;\n\
            \tfield:bool yes;\toffset:16;\tsize:1;\tsigned:0;\n\
            \tfield:u32 missing;\toffset:20;\tsize:4;\tsigned:0;\n\nprint fmt: \"\"\n";
        let format = EventFormat::parse("s", text.as_bytes()).unwrap();
        let mut record = [0; 17];
        record[..4].copy_from_slice(&(-5_i32).to_le_bytes());
        record[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
        record[16] = 1;
        let mut out = Vec::new();
        JsonEvent::new(&format, "s:e").write(&mut out, &record, ByteOrder::Little);
        let expected = ",\"event\":\"s:e\",\"fields\":{\"delta\":-5,\"at\":18446744073709551615,\
            \"yes\":true,\"missing\":null}}\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
