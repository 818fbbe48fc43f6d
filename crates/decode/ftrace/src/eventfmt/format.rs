//! The `format` text of an event: name, id, fields and print fmt.

use crate::eventfmt::error::FormatError;
use crate::eventfmt::field::{Field, FieldKind};
use crate::eventfmt::glob::glob;
use crate::eventfmt::text;

/// Maximum fields of an event; no kernel has more.
const MAX_FIELDS: usize = 4096;

/// An event according to its kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFormat {
    system: Box<str>,
    name: Box<str>,
    id: u16,
    fields: Vec<Field>,
    common: usize,
    print_fmt: Box<str>,
}

impl EventFormat {
    /// Parses the text of an `events/SYSTEM/EVENT/format` file.
    ///
    /// The print fmt is stored unparsed: an unusable print fmt is not an error here.
    ///
    /// # Errors
    /// If the name, the id or the position of a field is missing.
    pub fn parse(system: &str, text: &[u8]) -> Result<Self, FormatError> {
        let text = String::from_utf8_lossy(text);
        let (head, print_fmt) = split_print_fmt(&text);
        let (mut name, mut id) = (None, None);
        let (mut common, mut event_fields) = (Vec::new(), Vec::new());
        for line in head.lines().map(str::trim) {
            if let Some(text) = line.strip_prefix("name:") {
                name = Some(text.trim());
            } else if let Some(text) = line.strip_prefix("ID:") {
                id = Some(event_id(text.trim())?);
            } else if line.starts_with("field:") {
                let field = Field::parse(line)?;
                let list =
                    if field.name.starts_with("common_") { &mut common } else { &mut event_fields };
                list.push(field);
            }
            if common.len().max(event_fields.len()) > MAX_FIELDS {
                return Err(FormatError::TooManyFields(MAX_FIELDS));
            }
        }
        end_last_array(system, &mut event_fields);
        let common_count = common.len();
        common.append(&mut event_fields);
        Ok(Self {
            system: system.into(),
            name: name.ok_or(FormatError::Missing("name"))?.into(),
            id: id.ok_or(FormatError::Missing("ID"))?,
            fields: common,
            common: common_count,
            print_fmt: print_fmt.trim().into(),
        })
    }

    /// The event's system: `kvm`.
    #[must_use]
    pub fn system(&self) -> &str {
        &self.system
    }

    /// The event's name: `kvm_exit`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// System and name: `kvm:kvm_exit`.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{}:{}", self.system, self.name)
    }

    /// Whether a pattern (`SYSTEM:NAME`, `NAME` or `SYSTEM`, with `*` and `?`) matches the event.
    #[must_use]
    pub fn is_named(&self, pattern: &str) -> bool {
        match pattern.split_once(':').or_else(|| pattern.split_once('/')) {
            Some((system, name)) => glob(system, &self.system) && glob(name, &self.name),
            None => glob(pattern, &self.name) || glob(pattern, &self.system),
        }
    }

    /// The id of the event in records.
    #[must_use]
    pub fn id(&self) -> u16 {
        self.id
    }

    /// The fields of this event, in the kernel's order.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        self.fields.get(self.common..).unwrap_or(&[])
    }

    /// The fields that every event starts with: `common_type`, `common_pid` and so on.
    #[must_use]
    pub fn common_fields(&self) -> &[Field] {
        self.fields.get(..self.common).unwrap_or(&[])
    }

    /// The field with this name, event field or common field.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Field> {
        let event_field = self.fields().iter().find(|field| &*field.name == name);
        event_field.or_else(|| self.common_fields().iter().find(|field| &*field.name == name))
    }

    /// The text after `print fmt:`; empty if there is none.
    #[must_use]
    pub fn print_fmt(&self) -> &str {
        &self.print_fmt
    }

    /// The same event with another print fmt.
    #[must_use]
    pub fn printed_as(&self, print_fmt: &str) -> Self {
        Self { print_fmt: print_fmt.into(), ..self.clone() }
    }

    /// Minimum bytes of a record of the event.
    #[must_use]
    pub fn record_size(&self) -> usize {
        self.fields.iter().map(|field| field.end() as usize).max().unwrap_or(0)
    }

    /// A record of zeros, for [`poke`](Field::poke).
    #[must_use]
    pub fn blank_record(&self) -> Vec<u8> {
        vec![0; self.record_size()]
    }
}

/// Extends the last array of an ftrace event to the end of the record: a stack has a variable
/// number of frames, although its type is `caller[8]` (`__ftrace_trace_stack` in
/// `kernel/trace/trace.c`).
fn end_last_array(system: &str, fields: &mut [Field]) {
    if let Some(last) = fields.last_mut().filter(|_| system == "ftrace") {
        last.open_ended = matches!(last.kind, FieldKind::Array(_));
    }
}

fn split_print_fmt(text: &str) -> (&str, &str) {
    let mark = "print fmt:";
    let at = if text.starts_with(mark) { Some(0) } else { text.find("\nprint fmt:") };
    let Some((head, tail)) = at.and_then(|at| text.split_at_checked(at)) else {
        return (text, "");
    };
    (head, tail.trim_start().strip_prefix(mark).unwrap_or(""))
}

fn event_id(text: &str) -> Result<u16, FormatError> {
    let number = text::number(text).and_then(|number| u16::try_from(number).ok());
    number.ok_or_else(|| FormatError::Number { key: "ID", text: text.to_owned() })
}
