//! Visits fields of any type, value by value.

use crate::field::{Array, FieldType, Float, Integer, Label, Length, Source, Struct, Variant};
use crate::{Cursor, Short};

/// Receives the values of fields in order of recording.
pub trait Visit {
    /// An integer with its type; `None` if it has variable length.
    fn integer(
        &mut self,
        name: &str,
        value: i128,
        integer: Option<&Integer>,
        labels: Option<&[Label]>,
    );
    /// A floating-point number.
    fn float(&mut self, name: &str, value: f64, float: &Float);
    /// A string as bytes.
    fn text(&mut self, name: &str, bytes: &[u8]);
    /// Start of a structure or an array.
    fn begin(&mut self, name: &str, is_array: bool);
    /// End of a structure or an array.
    fn end(&mut self, is_array: bool);
    /// A variant without a choice.
    fn nothing(&mut self, _name: &str) {}
}

/// A position in a packet, and stored values that later fields depend on.
#[derive(Debug)]
pub struct Walker<'a, 's> {
    /// The position.
    pub cursor: Cursor<'a>,
    /// The stored values.
    pub slots: &'s mut [i128],
}

impl Walker<'_, '_> {
    /// Visits the fields of a structure.
    ///
    /// # Errors
    /// If the content ends within it.
    pub fn fields(&mut self, structure: &Struct, visit: &mut dyn Visit) -> Result<(), Short> {
        self.cursor.align(structure.align)?;
        structure
            .fields
            .iter()
            .try_for_each(|field| self.field(&field.name, &field.field_type, visit))
    }

    /// Visits a field.
    ///
    /// # Errors
    /// If the content ends within it.
    pub fn field(
        &mut self,
        name: &str,
        field_type: &FieldType,
        visit: &mut dyn Visit,
    ) -> Result<(), Short> {
        match field_type {
            FieldType::Integer(integer) => {
                let value = self.integer(integer)?;
                visit.integer(name, value, Some(integer), integer.labels.as_deref());
            }
            FieldType::VarInteger(integer) => {
                let value = self.var_integer(integer.signed)?;
                self.keep(integer.slot, value);
                visit.integer(name, value, None, integer.labels.as_deref());
            }
            FieldType::Float(float) => {
                let value = self.float(float)?;
                visit.float(name, value, float);
            }
            FieldType::Text(_) => {
                self.cursor.align(8)?;
                visit.text(name, self.cursor.take_text()?);
            }
            FieldType::Struct(structure) => {
                visit.begin(name, false);
                self.fields(structure, visit)?;
                visit.end(false);
            }
            FieldType::Array(array) => self.array(name, array, visit)?,
            FieldType::Variant(variant) => self.variant(name, variant, visit)?,
        }
        Ok(())
    }

    /// Reads an integer of a fixed number of bits.
    ///
    /// # Errors
    /// If the content ends within it.
    #[inline]
    pub fn integer(&mut self, integer: &Integer) -> Result<i128, Short> {
        self.cursor.align(integer.align)?;
        let at = self.cursor.take(integer.bits.into())?;
        let raw = self.cursor.unsigned_at(at, integer.bits, integer.order);
        let value = integer.value(raw.ok_or(Short { at, what: "the packet is cut short" })?);
        self.keep(integer.slot, value);
        Ok(value)
    }

    pub(crate) fn keep(&mut self, slot: Option<u16>, value: i128) {
        if let Some(to) = slot.and_then(|slot| self.slots.get_mut(usize::from(slot))) {
            *to = value;
        }
    }

    /// Stores the values of a run that begins at a bit.
    #[inline]
    pub(crate) fn keep_all(&mut self, at: u64, slot_fields: &[(u32, Integer)]) {
        for (from, integer) in slot_fields {
            let at = at.saturating_add((*from).into());
            if let Some(raw) = self.cursor.unsigned_at(at, integer.bits, integer.order) {
                self.keep(integer.slot, integer.value(raw));
            }
        }
    }

    /// A stored value as a number of elements.
    #[inline]
    pub(crate) fn count(&self, slot: u16) -> u64 {
        let count = self.slots.get(usize::from(slot)).copied().unwrap_or(0);
        u64::try_from(count).unwrap_or(u64::MAX)
    }

    /// The value of a field that another depends on.
    fn value_of(&self, source: &Source) -> i128 {
        match source {
            Source::Slot(slot) => self.slots.get(usize::from(*slot)).copied().unwrap_or(0),
            Source::Named(_) => 0,
        }
    }

    fn var_integer(&mut self, is_signed: bool) -> Result<i128, Short> {
        self.cursor.align(8)?;
        let (mut value, mut bits) = (0_u128, 0_u32);
        loop {
            let at = self.cursor.at();
            let byte = *self.cursor.take_bytes(1)?.first().unwrap_or(&0);
            if bits >= 70 {
                return Err(Short { at, what: "a number has more than 64 bits" });
            }
            value |= u128::from(byte & 0x7f) << bits;
            bits += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
        let above = 128_u32.saturating_sub(bits).min(127);
        let signed = (value << above).cast_signed() >> above;
        Ok(if is_signed { signed } else { value.cast_signed() })
    }

    fn float(&mut self, float: &Float) -> Result<f64, Short> {
        self.cursor.align(float.align)?;
        let at = self.cursor.take(float.bits.into())?;
        let raw = self.cursor.unsigned_at(at, float.bits, float.order);
        let raw = raw.ok_or(Short { at, what: "the packet is cut short" })?;
        Ok(float.value(raw))
    }

    /// The number of elements of an array, checked against the remaining content.
    fn length(&self, array: &Array) -> Result<u64, Short> {
        let length = match &array.length {
            Length::Fixed(length) => *length,
            Length::Of(source) => u64::try_from(self.value_of(source)).unwrap_or(u64::MAX),
        };
        // Elements without bits have no values, so more elements than remaining bits are refused as
        // well.
        if length > self.cursor.remaining() {
            let what = "an array is longer than the packet's content";
            return Err(Short { at: self.cursor.at(), what });
        }
        Ok(length)
    }

    fn array(&mut self, name: &str, array: &Array, visit: &mut dyn Visit) -> Result<(), Short> {
        self.cursor.align(array.align)?;
        let length = self.length(array)?;
        if array.is_text {
            let bytes = self.cursor.take_bytes(length)?;
            visit.text(name, until_nul(bytes));
            return Ok(());
        }
        visit.begin(name, true);
        for _ in 0..length {
            self.field("", &array.element, visit)?;
        }
        visit.end(true);
        Ok(())
    }

    fn variant(
        &mut self,
        name: &str,
        variant: &Variant,
        visit: &mut dyn Visit,
    ) -> Result<(), Short> {
        let tag = self.value_of(&variant.tag);
        let is_in = |ranges: &[(i128, i128)]| ranges.iter().any(|&(a, b)| a <= tag && tag <= b);
        match variant.choices.iter().find(|choice| is_in(&choice.ranges)) {
            Some(choice) => self.field(name, &choice.field_type, visit),
            None if variant.is_optional => {
                visit.nothing(name);
                Ok(())
            }
            None => Err(Short { at: self.cursor.at(), what: "a variant's tag selects no field" }),
        }
    }
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or(bytes)
}

/// A visitor that ignores all values.
#[derive(Clone, Copy, Debug)]
pub struct Nothing;

impl Visit for Nothing {
    fn integer(&mut self, _: &str, _: i128, _: Option<&Integer>, _: Option<&[Label]>) {}
    fn float(&mut self, _: &str, _: f64, _: &Float) {}
    fn text(&mut self, _: &str, _: &[u8]) {}
    fn begin(&mut self, _: &str, _: bool) {}
    fn end(&mut self, _: bool) {}
}

/// The text for fields that have no fixed layout in a record.
#[derive(Debug, Default)]
pub(crate) struct Printed {
    pub(crate) text: String,
}

impl Printed {
    fn label(&mut self, name: &str) {
        if !matches!(self.text.chars().last(), None | Some('{' | '[')) {
            self.text.push_str(", ");
        }
        if !name.is_empty() {
            self.text.push_str(name);
            self.text.push('=');
        }
    }
}

impl Visit for Printed {
    fn integer(&mut self, name: &str, value: i128, _: Option<&Integer>, labels: Option<&[Label]>) {
        self.label(name);
        let named = labels.and_then(|labels| {
            labels.iter().find(|label| label.from <= value && value <= label.to)
        });
        match named {
            Some(label) => self.text.push_str(&label.name),
            None => self.text.push_str(&value.to_string()),
        }
    }

    fn float(&mut self, name: &str, value: f64, _: &Float) {
        self.label(name);
        self.text.push_str(&value.to_string());
    }

    fn text(&mut self, name: &str, bytes: &[u8]) {
        self.label(name);
        self.text.push_str(&String::from_utf8_lossy(bytes));
    }

    fn begin(&mut self, name: &str, is_array: bool) {
        self.label(name);
        self.text.push(if is_array { '[' } else { '{' });
    }

    fn end(&mut self, is_array: bool) {
        self.text.push(if is_array { ']' } else { '}' });
    }
}
