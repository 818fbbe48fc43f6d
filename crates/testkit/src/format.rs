//! The format of an event, and its text as in `events/SYSTEM/NAME/format`.

use std::fmt::Write as _;

/// A field of an event record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// C type as the format text spells it.
    pub c_type: String,
    /// Name without a count.
    pub name: String,
    /// Name with the length of an array: `comm[16]`.
    pub declarator: String,
    /// Offset in the record.
    pub offset: usize,
    /// Size in bytes; of an array, the size of all elements.
    pub size: usize,
    /// Alignment: the size of an element.
    pub align: usize,
    /// Whether the type is signed.
    pub signed: bool,
}

impl Field {
    pub(crate) fn new(
        c_type: &str,
        declarator: &str,
        offset: usize,
        size: usize,
        align: usize,
        signed: bool,
    ) -> Self {
        let name = declarator.split('[').next().unwrap_or(declarator).to_owned();
        let (c_type, declarator) = (c_type.to_owned(), declarator.to_owned());
        Self { c_type, name, declarator, offset, size, align, signed }
    }

    /// Whether the record holds only the value's offset and length (`__data_loc`).
    #[must_use]
    pub fn is_dynamic(&self) -> bool {
        self.c_type.starts_with("__data_loc")
    }
}

/// The format of one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    /// Subsystem, such as `kvm`.
    pub system: &'static str,
    /// Name, such as `kvm_exit`.
    pub name: &'static str,
    /// The event id, which `common_type` holds.
    pub id: u16,
    /// The four common fields.
    pub common: Vec<Field>,
    /// The event's own fields.
    pub fields: Vec<Field>,
    /// The text after `print fmt: `.
    pub print: &'static str,
}

impl Format {
    /// The field `name`, including common fields.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.common.iter().chain(&self.fields).find(|field| field.name == name)
    }

    /// The text of the event's `format` file.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("name: {}\nID: {}\nformat:\n", self.name, self.id);
        push_fields(&mut text, &self.common);
        text.push('\n');
        push_fields(&mut text, &self.fields);
        text.push_str("\nprint fmt: ");
        text.push_str(self.print);
        text.push('\n');
        text
    }
}

fn push_fields(text: &mut String, fields: &[Field]) {
    for field in fields {
        let Field { c_type, declarator, offset, size, .. } = field;
        let signed = u8::from(field.signed);
        // Writing to a String can't fail.
        let _ = writeln!(
            text,
            "\tfield:{c_type} {declarator};\toffset:{offset};\tsize:{size};\tsigned:{signed};"
        );
    }
}
