//! Field classes of CTF 2: field types as objects or as names of aliases.

use raw_bytes::ByteOrder;
use serde_json::Value;

use super::{Object, Reader, integer, number, text};
use crate::CtfError;
use crate::field::{
    Array, Choice, Field, FieldType, Float, Integer, Label, Length, Role, Source, Struct, Text,
    VarInteger, Variant,
};

/// Maximum number of types in a trace's metadata.
const MAX_NODES: usize = 1 << 20;
/// Maximum nesting depth of types.
const MAX_DEPTH: usize = 64;

impl Reader {
    /// A field class, or the name of an alias.
    pub(super) fn class(&mut self, value: &Value) -> Result<FieldType, CtfError> {
        let field_type = match value {
            Value::String(name) => match self.aliases.get(name) {
                Some(field_type) => field_type.clone(),
                None => return self.fail(format!("there is no field class {name}")),
            },
            Value::Object(object) => {
                self.depth += 1;
                if self.depth > MAX_DEPTH {
                    return self.fail("field classes are nested too deeply");
                }
                let field_type = self.object(object)?;
                self.depth -= 1;
                field_type
            }
            _ => return self.fail("a field class is neither an object nor a name"),
        };
        self.nodes = self.nodes.saturating_add(field_type.nodes());
        if self.nodes > MAX_NODES {
            return Err(CtfError::TooMany { most: MAX_NODES });
        }
        if field_type.depth() > MAX_DEPTH {
            return self.fail("field classes are nested too deeply");
        }
        Ok(field_type)
    }

    fn object(&mut self, object: &Object) -> Result<FieldType, CtfError> {
        let Some(kind) = text(object, "type") else {
            return self.fail("a field class has no type");
        };
        Ok(match kind {
            "structure" => self.members(object)?,
            "null-terminated-string" => FieldType::Text(Text),
            "static-length-string" | "static-length-blob" => {
                self.bytes(Length::Fixed(number(object, "length").unwrap_or(0)), kind)
            }
            "dynamic-length-string" | "dynamic-length-blob" => {
                self.bytes(Length::Of(self.location(object, "length-field-location")?), kind)
            }
            "static-length-array" => {
                let length = Length::Fixed(number(object, "length").unwrap_or(0));
                self.array(object, length)?
            }
            "dynamic-length-array" => {
                let length = Length::Of(self.location(object, "length-field-location")?);
                self.array(object, length)?
            }
            "optional" => self.optional(object)?,
            "variant" => self.variant(object)?,
            "fixed-length-floating-point-number" => {
                let bits = self.bits(object)?;
                if !matches!(bits, 32 | 64) {
                    return self.fail("a floating-point number has neither 32 nor 64 bits");
                }
                let (align, order) = (self.align(object, "alignment")?, self.order(object)?);
                FieldType::Float(Float { bits, align, order })
            }
            _ if kind.starts_with("fixed-length-") => self.fixed(object, kind)?,
            _ if kind.starts_with("variable-length-") => FieldType::VarInteger(VarInteger {
                signed: kind.contains("-signed-"),
                labels: labels(object),
                role: role(object),
                slot: None,
            }),
            other => return self.fail(format!("fields of type {other} are not supported")),
        })
    }

    fn bits(&self, object: &Object) -> Result<u32, CtfError> {
        let bits = number(object, "length").unwrap_or(0);
        match u32::try_from(bits).ok().filter(|bits| (1..=64).contains(bits)) {
            Some(bits) => Ok(bits),
            None => self.fail(format!("numbers of {bits} bits are not supported")),
        }
    }

    fn align(&self, object: &Object, key: &str) -> Result<u32, CtfError> {
        let align = object.get(key).map_or(Some(1), Value::as_u64);
        let align = align.and_then(|align| u32::try_from(align).ok());
        match align.filter(|align| align.is_power_of_two() && *align <= 1 << 16) {
            Some(align) => Ok(align),
            None => self.fail("an alignment is not a power of two"),
        }
    }

    fn order(&self, object: &Object) -> Result<ByteOrder, CtfError> {
        let (order, first_to_last) = match text(object, "byte-order") {
            Some("big-endian") => (ByteOrder::Big, "last-to-first"),
            Some("little-endian") => (ByteOrder::Little, "first-to-last"),
            _ => return self.fail("a number has no byte order"),
        };
        if text(object, "bit-order").is_some_and(|given| given != first_to_last) {
            return self
                .fail("a number whose bit order differs from its byte order is not supported");
        }
        Ok(order)
    }

    fn fixed(&self, object: &Object, kind: &str) -> Result<FieldType, CtfError> {
        let (bits, align) = (self.bits(object)?, self.align(object, "alignment")?);
        let is_number = kind.contains("integer") || kind.contains("enumeration");
        let base = number(object, "preferred-display-base").unwrap_or(10);
        Ok(FieldType::Integer(Integer {
            signed: kind.contains("-signed-"),
            base: if is_number { u8::try_from(base).unwrap_or(10) } else { 16 },
            labels: labels(object),
            role: role(object),
            ..Integer::new(bits, align, self.order(object)?)
        }))
    }

    fn bytes(&self, length: Length, kind: &str) -> FieldType {
        let byte = Integer {
            is_text: kind.ends_with("string"),
            base: 16,
            ..Integer::new(8, 8, ByteOrder::Little)
        };
        FieldType::Array(Array::new(length, FieldType::Integer(byte)))
    }

    fn members(&mut self, object: &Object) -> Result<FieldType, CtfError> {
        let mut fields = Vec::new();
        for member in object.get("member-classes").and_then(Value::as_array).into_iter().flatten() {
            let member = member.as_object();
            let class = member.and_then(|member| member.get("field-class"));
            let (Some(member), Some(class)) = (member, class) else {
                return self.fail("a member of a structure has no field class");
            };
            let name = text(member, "name").unwrap_or_default().to_owned();
            fields.push(Field { name, field_type: self.class(class)? });
        }
        let align = self.align(object, "minimum-alignment")?;
        Ok(FieldType::Struct(Struct::new(fields, align)))
    }

    fn array(&mut self, object: &Object, length: Length) -> Result<FieldType, CtfError> {
        let Some(element) = object.get("element-field-class") else {
            return self.fail("an array has no field class for its elements");
        };
        let mut array = Array::new(length, self.class(element)?);
        array.align = array.align.max(self.align(object, "minimum-alignment")?);
        Ok(FieldType::Array(array))
    }

    fn optional(&mut self, object: &Object) -> Result<FieldType, CtfError> {
        let Some(class) = object.get("field-class") else {
            return self.fail("an optional field has no field class");
        };
        // Without ranges, the selector is a boolean.
        let ranges = ranges(object.get("selector-field-ranges")).unwrap_or(vec![(1, i128::MAX)]);
        let name = String::new();
        let choice = Choice { name, label: String::new(), ranges, field_type: self.class(class)? };
        let tag = self.location(object, "selector-field-location")?;
        Ok(FieldType::Variant(Variant { tag, choices: vec![choice], is_optional: true }))
    }

    fn variant(&mut self, object: &Object) -> Result<FieldType, CtfError> {
        let mut choices = Vec::new();
        for option in object.get("options").and_then(Value::as_array).into_iter().flatten() {
            let option = option.as_object();
            let class = option.and_then(|option| option.get("field-class"));
            let (Some(option), Some(class)) = (option, class) else {
                return self.fail("an option of a variant has no field class");
            };
            choices.push(Choice {
                name: text(option, "name").unwrap_or_default().to_owned(),
                label: String::new(),
                ranges: ranges(option.get("selector-field-ranges")).unwrap_or_default(),
                field_type: self.class(class)?,
            });
        }
        let tag = self.location(object, "selector-field-location")?;
        Ok(FieldType::Variant(Variant { tag, choices, is_optional: false }))
    }

    /// The position of another field: a scope and names, which drafts store in one list.
    fn location(&self, object: &Object, key: &str) -> Result<Source, CtfError> {
        let (origin, path) = match object.get(key) {
            Some(Value::Array(all)) => match all.split_first() {
                Some((origin, path)) => (origin.as_str(), path),
                None => return self.fail("a location is empty"),
            },
            Some(Value::Object(location)) => {
                let path = location.get("path").and_then(Value::as_array);
                (text(location, "origin"), path.map_or(&[][..], Vec::as_slice))
            }
            _ => return self.fail(format!("{key} is missing")),
        };
        let scope: &[&str] = match origin {
            Some("packet-header") => &["trace", "packet", "header"],
            Some("packet-context") => &["stream", "packet", "context"],
            Some("event-record-header") => &["stream", "event", "header"],
            Some("event-record-common-context") => &["stream", "event", "context"],
            Some("event-record-specific-context") => &["event", "context"],
            Some("event-record-payload") => &["event", "fields"],
            None => &[],
            Some(other) => return self.fail(format!("{other} is not a part of an event")),
        };
        let names = path.iter().filter_map(Value::as_str);
        Ok(Source::Named(scope.iter().copied().chain(names).map(str::to_owned).collect()))
    }
}

fn ranges(value: Option<&Value>) -> Option<Vec<(i128, i128)>> {
    let range = |range: &Value| {
        let [from, to] = range.as_array()?.as_slice() else { return None };
        Some((integer(from)?, integer(to)?))
    };
    value?.as_array()?.iter().map(range).collect()
}

fn labels(object: &Object) -> Option<std::sync::Arc<[Label]>> {
    let mappings = object.get("mappings")?.as_object()?;
    let labels = mappings.iter().flat_map(|(name, values)| {
        let ranges = ranges(Some(values)).unwrap_or_default();
        ranges.into_iter().map(|(from, to)| Label { name: name.clone(), from, to })
    });
    Some(labels.collect::<Vec<_>>().into())
}

fn role(object: &Object) -> Option<Role> {
    object.get("roles")?.as_array()?.iter().find_map(|role| {
        Some(match role.as_str()? {
            "packet-magic-number" => Role::Magic,
            "data-stream-class-id" => Role::StreamId,
            "data-stream-id" => Role::StreamInstance,
            "packet-total-length" => Role::PacketSize,
            "packet-content-length" => Role::ContentSize,
            "default-clock-timestamp" => Role::Timestamp,
            "packet-end-default-clock-timestamp" => Role::End,
            "discarded-event-record-counter-snapshot" => Role::Discarded,
            "packet-sequence-number" => Role::Sequence,
            "event-record-class-id" => Role::EventId,
            _ => return None,
        })
    })
}
