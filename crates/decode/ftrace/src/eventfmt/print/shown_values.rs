//! How a print fmt shows values: the label of each, and the names of values.

use raw_bytes::Abi;

use super::eval::Record;
use super::ir::{Conversion, ConversionKind, Num, Piece, Text};
use super::writer::Writer;
use super::{PrintContext, PrintProgram};
use crate::eventfmt::format::EventFormat;
use crate::eventfmt::kallsyms::Kallsyms;
use crate::eventfmt::number::NumberAt;
use crate::eventfmt::printk_formats::PrintkFormats;

/// A field value in a print fmt.
#[derive(Clone, Debug)]
pub struct ShownValue {
    /// The word before it: `reason` in `reason %s`, `prev_pid` in `prev_pid=%d`; empty if there is
    /// none.
    pub label: String,
    /// The name of the field.
    pub field: Box<str>,
    /// Its names, if it is shown by name.
    pub named: Option<NamedValue>,
}

/// A value that is shown by name.
#[derive(Clone, Debug)]
pub struct NamedValue {
    abi: Abi,
    conversion: Conversion,
    names: Vec<String>,
    has_flags: bool,
}

impl NamedValue {
    /// Its possible names; for flags, those of single bits.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether several names can be combined, as with flags.
    #[must_use]
    pub fn has_flags(&self) -> bool {
        self.has_flags
    }

    /// The text for a record; `None` if the record is too short.
    #[must_use]
    pub fn text(&self, record: &[u8]) -> Option<String> {
        let (kallsyms, printk) = (Kallsyms::default(), PrintkFormats::default());
        let context = PrintContext { kallsyms: &kallsyms, printk: &printk };
        let writer = Writer { record: Record::new(record, self.abi), context };
        let mut out = Vec::new();
        writer.conversion(&self.conversion, &mut out).ok()?;
        Some(String::from_utf8_lossy(&out).into_owned())
    }
}

impl PrintProgram {
    /// The shown field values, in text order.
    #[must_use]
    pub fn shown_values(&self, format: &EventFormat) -> Vec<ShownValue> {
        let mut shown = Vec::new();
        let mut label = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Literal(text) => label = label_of(text),
                Piece::Conversion(conversion) => {
                    shown.extend(self.shown_value(format, std::mem::take(&mut label), conversion));
                }
            }
        }
        shown
    }

    fn shown_value(
        &self,
        format: &EventFormat,
        label: String,
        conversion: &Conversion,
    ) -> Option<ShownValue> {
        let mut found = Names::default();
        if let ConversionKind::Text(text) = &conversion.what {
            found.add(text);
        }
        let field = match (conversion.field, found.value) {
            (Some(index), _) => format.fields().get(index as usize),
            (None, Some(at)) => format.fields().iter().find(|field| field.number() == Some(at)),
            (None, None) => None,
        }?;
        let named = (!found.names.is_empty()).then(|| NamedValue {
            abi: self.abi,
            conversion: conversion.clone(),
            names: found.names,
            has_flags: found.has_flags,
        });
        Some(ShownValue { label, field: field.name.clone(), named })
    }
}

/// Names in a text, and their values.
#[derive(Default)]
struct Names {
    value: Option<NumberAt>,
    names: Vec<String>,
    has_flags: bool,
}

impl Names {
    fn add(&mut self, text: &Text) {
        match text {
            Text::Symbol(symbolic) => self.add_table(&symbolic.value, &symbolic.names),
            Text::Flags(flags) => {
                self.has_flags = true;
                self.add_table(&flags.value, &flags.names);
            }
            Text::Choice(choice) => {
                let (_, yes, no) = &**choice;
                self.add(yes);
                self.add(no);
            }
            // The text if no flag is set: "R" for a runnable thread.
            Text::Literal(text) => self.add_name(text),
            _ => {}
        }
    }

    fn add_table(&mut self, value: &Num, names: &[(u64, Box<[u8]>)]) {
        self.value = self.value.or_else(|| first_field(value));
        names.iter().for_each(|(_, name)| self.add_name(name));
    }

    fn add_name(&mut self, name: &[u8]) {
        let name = String::from_utf8_lossy(name).into_owned();
        if !name.is_empty() && !self.names.contains(&name) {
            self.names.push(name);
        }
    }
}

/// The field in a number, if it contains exactly one.
fn first_field(num: &Num) -> Option<NumberAt> {
    match num {
        Num::Field(at) => Some(*at),
        Num::Cast(inner, _) | Num::Swap(inner, _) | Num::Not(inner) => first_field(inner),
        Num::Binary(binary) => first_field(&binary.lhs).or_else(|| first_field(&binary.right)),
        Num::Choice(parts) => parts.iter().find_map(first_field),
        _ => None,
    }
}

/// The last word of a literal, without the separator before its value.
fn label_of(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let text = text.strip_suffix("0x").unwrap_or(&text);
    let text = text.trim_end_matches([' ', '=', ':']);
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.rsplit(|c| !is_word(c)).next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use raw_bytes::{ByteOrder, LongSize};

    use super::*;

    const ABI: Abi = Abi { order: ByteOrder::Little, long: LongSize::Eight };
    const EXIT: &[u8] = b"name: kvm_exit\nID: 67\nformat:\n\
        \tfield:unsigned int exit_reason;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:unsigned long guest_rip;\toffset:16;\tsize:8;\tsigned:0;\n\
        \tfield:u32 isa;\toffset:24;\tsize:4;\tsigned:0;\n\
        \tfield:unsigned int vcpu_id;\toffset:28;\tsize:4;\tsigned:0;\n\n\
        print fmt: \"vcpu %u reason %s rip 0x%lx\", REC->vcpu_id, (REC->isa == 1) ? \
        __print_symbolic(REC->exit_reason & 0xffff, {31, \"MSR_READ\"}, {32, \"MSR_WRITE\"}) : \
        __print_symbolic(REC->exit_reason, {124, \"msr\"}), REC->guest_rip\n";

    #[test]
    fn values_are_found_by_the_words_before_them() {
        let format = EventFormat::parse("kvm", EXIT).unwrap();
        let shown = PrintProgram::compile(&format, ABI).unwrap().shown_values(&format);
        let words: Vec<(&str, &str)> =
            shown.iter().map(|value| (value.label.as_str(), &*value.field)).collect();
        assert_eq!(words, [("vcpu", "vcpu_id"), ("reason", "exit_reason"), ("rip", "guest_rip")]);
        let named = shown.iter().find_map(|value| value.named.as_ref()).unwrap();
        assert_eq!(named.names(), ["MSR_READ", "MSR_WRITE", "msr"]);
        let mut record = format.blank_record();
        format.field("exit_reason").unwrap().poke(&mut record, ABI.order, 124);
        assert_eq!(named.text(&record).as_deref(), Some("msr"));
        assert_eq!(named.text(record.get(..9).unwrap()), None);
    }

    #[test]
    fn a_label_is_the_last_word() {
        for (text, label) in [
            (&b" rip 0x"[..], "rip"),
            (b"prev_comm=", "prev_comm"),
            (b" ==> next_comm=", "next_comm"),
            (b", HSR_EC: 0x", "HSR_EC"),
            (b" (", ""),
            (b"", ""),
        ] {
            assert_eq!(label_of(text), label);
        }
    }
}
