//! The layout of an event's fields: runs of fields at fixed positions, and fields of variable
//! length between them.

use crate::field::{Array, FieldType, Float, Integer, Length, Source, Struct};
use crate::layout::{EventClass, StreamClass};

/// Maximum bits of a run; longer ones are split.
const MAX_BITS: u32 = 1 << 24;
/// Maximum array elements in a run.
const MAX_ELEMENTS: u64 = 1 << 16;

/// The part of an event that contains a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The context that every event of the stream has.
    StreamContext,
    /// The context of events of this class.
    EventContext,
    /// The event's fields.
    Payload,
}

/// Consecutive fields of an event.
#[derive(Clone, Debug)]
pub enum Step {
    /// A run of fields, with positions relative to its start.
    Fixed {
        /// Alignment of its start in bits.
        align: u32,
        /// Length in bits.
        bits: u32,
        /// Its fields.
        fields: Vec<FixedField>,
        /// Fields that other fields depend on, with their positions.
        slot_fields: Vec<(u32, Integer)>,
    },
    /// A NUL-terminated string.
    Text {
        /// Its name.
        name: String,
        /// Its scope.
        scope: Scope,
    },
    /// Integers of whole bytes, whose number is in another field.
    Sequence {
        /// Its name.
        name: String,
        /// Its scope.
        scope: Scope,
        /// Slot with the number of elements.
        slot: u16,
        /// Type of the elements.
        element: Integer,
        /// Whether they are a string.
        is_text: bool,
    },
    /// Any other field.
    Other {
        /// Its name.
        name: String,
        /// Its scope.
        scope: Scope,
        /// Its type.
        field_type: FieldType,
    },
}

/// A field of a run.
#[derive(Clone, Debug)]
pub struct FixedField {
    /// Its name, prefixed by the names of its enclosing structures.
    pub name: String,
    /// Its scope.
    pub scope: Scope,
    /// The bit at which it begins.
    pub at: u32,
    /// Number of elements of an array.
    pub count: Option<u32>,
    /// Its type, or that of its elements.
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
    /// Number of bits.
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

/// The steps of the data of an event after its header.
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

/// The steps of a structure.
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

    /// Aligns the next field.
    fn align(&mut self, to: u32) {
        match &mut self.run {
            Some(run) if to <= run.align && run.bits < MAX_BITS => {
                run.bits = run.bits.next_multiple_of(to.max(1));
            }
            // The run is still empty, so aligning its start has the same effect.
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
