//! Where an event's fields lie: runs of fields whose places are known before an event is read, and those
//! between them whose length it says itself.

use crate::field::{Array, FieldType, Float, Integer, Length, Source, Struct};
use crate::layout::{EventClass, StreamClass};

/// Bits of a run, at most; what is longer is several.
const MAX_BITS: u32 = 1 << 24;
/// Elements of an array in a run, at most.
const MAX_ELEMENTS: u64 = 1 << 16;

/// Which part of an event a field is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// A part that every event of the stream has.
    StreamContext,
    /// A part that events of this class have before their fields.
    EventContext,
    /// Its fields.
    Payload,
}

/// Some fields of an event, one after another.
#[derive(Clone, Debug)]
pub enum Step {
    /// A run of fields, whose places are counted from its beginning.
    Fixed {
        /// The bits that its beginning is aligned to.
        align: u32,
        /// How many bits it has.
        bits: u32,
        /// Its fields.
        fields: Vec<FixedField>,
        /// Those of them that others depend on: where they are, and what.
        slot_fields: Vec<(u32, Integer)>,
    },
    /// Bytes up to a NUL.
    Text {
        /// Its name.
        name: String,
        /// Where it is.
        scope: Scope,
    },
    /// Integers of whole bytes, as many as another field says.
    Sequence {
        /// Its name.
        name: String,
        /// Where it is.
        scope: Scope,
        /// The place of the value that says how many.
        slot: u16,
        /// What each is.
        element: Integer,
        /// Whether they are a text.
        is_text: bool,
    },
    /// Any other field.
    Other {
        /// Its name.
        name: String,
        /// Where it is.
        scope: Scope,
        /// Its type.
        field_type: FieldType,
    },
}

/// A field of a run.
#[derive(Clone, Debug)]
pub struct FixedField {
    /// Its name; those of structures around it stand before it.
    pub name: String,
    /// Where it is.
    pub scope: Scope,
    /// The bit where it begins.
    pub at: u32,
    /// How many there are, of an array.
    pub count: Option<u32>,
    /// Its type, or its elements'.
    pub field_type: FixedType,
}

/// The type of a field of a run.
#[derive(Clone, Debug)]
pub enum FixedType {
    /// An integer.
    Integer(Integer),
    /// A floating-point number.
    Float(Float),
}

impl FixedType {
    /// How many bits it has.
    #[must_use]
    pub fn bits(&self) -> u32 {
        match self {
            Self::Integer(integer) => integer.bits,
            Self::Float(float) => float.bits,
        }
    }

    /// Its byte order.
    #[must_use]
    pub fn order(&self) -> crate::ByteOrder {
        match self {
            Self::Integer(integer) => integer.order,
            Self::Float(float) => float.order,
        }
    }

    fn align(&self) -> u32 {
        match self {
            Self::Integer(integer) => integer.align,
            Self::Float(float) => float.align,
        }
    }
}

/// The steps of all that an event has behind its head.
pub(crate) fn of_event(stream: &StreamClass, event: &EventClass) -> Vec<Step> {
    let scopes = [
        (Scope::StreamContext, &stream.event_context),
        (Scope::EventContext, &event.context),
        (Scope::Payload, &event.payload),
    ];
    let mut builder = Builder::default();
    for (scope, fields) in scopes {
        if let Some(fields) = fields {
            builder.fields("", fields, scope);
        }
    }
    builder.flush();
    builder.steps
}

/// The steps of a structure alone.
pub(crate) fn of_struct(structure: &Struct) -> Vec<Step> {
    let mut builder = Builder::default();
    builder.fields("", structure, Scope::Payload);
    builder.flush();
    builder.steps
}

#[derive(Default)]
struct Builder {
    steps: Vec<Step>,
    run: Option<Run>,
}

struct Run {
    align: u32,
    bits: u32,
    fields: Vec<FixedField>,
}

impl Builder {
    fn flush(&mut self) {
        if let Some(Run { align, bits, fields }) = self.run.take() {
            let slot_fields = fields.iter().filter_map(|field| match &field.field_type {
                FixedType::Integer(integer) if integer.slot.is_some() => {
                    Some((field.at, integer.clone()))
                }
                _ => None,
            });
            let slot_fields = slot_fields.collect();
            self.steps.push(Step::Fixed { align, bits, fields, slot_fields });
        }
    }

    /// Aligns what comes next.
    fn align(&mut self, to: u32) {
        match &mut self.run {
            Some(run) if to <= run.align && run.bits < MAX_BITS => {
                run.bits = run.bits.next_multiple_of(to.max(1));
            }
            // Nothing that an alignment of a run's beginning would not have done lies before it.
            Some(run) if run.bits == 0 => run.align = run.align.max(to),
            _ => {
                self.flush();
                self.run = Some(Run { align: to.max(1), bits: 0, fields: Vec::new() });
            }
        }
    }

    fn fields(&mut self, around: &str, structure: &Struct, scope: Scope) {
        self.align(structure.align);
        for field in &structure.fields {
            let name = match around {
                "" => field.name.clone(),
                _ => format!("{around}.{}", field.name),
            };
            self.field(name, &field.field_type, scope);
        }
    }

    fn field(&mut self, name: String, field_type: &FieldType, scope: Scope) {
        match field_type {
            FieldType::Integer(integer) => {
                self.fixed(name, None, FixedType::Integer(integer.clone()), scope)
            }
            FieldType::Float(float) => {
                self.fixed(name, None, FixedType::Float(float.clone()), scope)
            }
            FieldType::Struct(structure) => self.fields(&name, structure, scope),
            FieldType::Array(array) => self.array(name, array, field_type, scope),
            FieldType::Text(_) => {
                self.flush();
                self.steps.push(Step::Text { name, scope });
            }
            FieldType::VarInteger(_) | FieldType::Variant(_) => self.other(name, field_type, scope),
        }
    }

    fn other(&mut self, name: String, field_type: &FieldType, scope: Scope) {
        self.flush();
        self.steps.push(Step::Other { name, scope, field_type: field_type.clone() });
    }

    fn fixed(&mut self, name: String, count: Option<u32>, field_type: FixedType, scope: Scope) {
        self.align(field_type.align());
        if let Some(run) = &mut self.run {
            let at = run.bits;
            run.bits =
                run.bits.saturating_add(field_type.bits().saturating_mul(count.unwrap_or(1)));
            run.fields.push(FixedField { name, scope, at, count, field_type });
        }
    }

    fn array(&mut self, name: String, array: &Array, field_type: &FieldType, scope: Scope) {
        let element = match &*array.element {
            FieldType::Integer(element) => FixedType::Integer(element.clone()),
            FieldType::Float(element) => FixedType::Float(element.clone()),
            _ => return self.other(name, field_type, scope),
        };
        let is_dense = element.bits() % element.align().max(1) == 0;
        match (&array.length, element) {
            (Length::Fixed(count), element) if is_dense && *count <= MAX_ELEMENTS => {
                self.fixed(name, u32::try_from(*count).ok(), element, scope);
            }
            (Length::Of(Source::Slot(slot)), FixedType::Integer(element))
                if is_dense && element.align >= 8 && matches!(element.bits, 8 | 16 | 32 | 64) =>
            {
                self.flush();
                let (slot, is_text) = (*slot, array.is_text);
                self.steps.push(Step::Sequence { name, scope, slot, element, is_text });
            }
            _ => self.other(name, field_type, scope),
        }
    }
}
