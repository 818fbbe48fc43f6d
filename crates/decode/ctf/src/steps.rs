//! Where an event's fields lie: runs of fields whose places are known before an event is read, and those
//! between them whose length it says itself.

use crate::field::{Array, FieldType, Float, Integer, Length, Source, Struct};
use crate::layout::{EventClass, StreamClass};

/// Bits of a run, at most; what is longer is several.
const MOST_BITS: u32 = 1 << 24;
/// Elements of an array in a run, at most.
const MOST_ELEMENTS: u64 = 1 << 16;

/// Which part of an event a field is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// What every event of its stream has.
    StreamContext,
    /// What events of its class have before their fields.
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
        kept: Vec<(u32, Integer)>,
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
        of: FieldType,
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
    pub of: FixedType,
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
            Self::Integer(one) => one.bits,
            Self::Float(one) => one.bits,
        }
    }

    /// Its byte order.
    #[must_use]
    pub fn order(&self) -> crate::ByteOrder {
        match self {
            Self::Integer(one) => one.order,
            Self::Float(one) => one.order,
        }
    }

    fn align(&self) -> u32 {
        match self {
            Self::Integer(one) => one.align,
            Self::Float(one) => one.align,
        }
    }
}

/// The steps of all that an event has behind its head.
pub(crate) fn of(stream: &StreamClass, event: &EventClass) -> Vec<Step> {
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
pub(crate) fn of_struct(one: &Struct) -> Vec<Step> {
    let mut builder = Builder::default();
    builder.fields("", one, Scope::Payload);
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
            let kept = fields.iter().filter_map(|field| match &field.of {
                FixedType::Integer(one) if one.slot.is_some() => Some((field.at, one.clone())),
                _ => None,
            });
            let kept = kept.collect();
            self.steps.push(Step::Fixed { align, bits, fields, kept });
        }
    }

    /// Aligns what comes next.
    fn align(&mut self, to: u32) {
        match &mut self.run {
            Some(run) if to <= run.align && run.bits < MOST_BITS => {
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

    fn fields(&mut self, around: &str, one: &Struct, scope: Scope) {
        self.align(one.align);
        for field in &one.fields {
            let name = match around {
                "" => field.name.clone(),
                _ => format!("{around}.{}", field.name),
            };
            self.field(name, &field.of, scope);
        }
    }

    fn field(&mut self, name: String, of: &FieldType, scope: Scope) {
        match of {
            FieldType::Integer(one) => {
                self.fixed(name, None, FixedType::Integer(one.clone()), scope)
            }
            FieldType::Float(one) => self.fixed(name, None, FixedType::Float(one.clone()), scope),
            FieldType::Struct(one) => self.fields(&name, one, scope),
            FieldType::Array(one) => self.array(name, one, of, scope),
            FieldType::Text(_) => {
                self.flush();
                self.steps.push(Step::Text { name, scope });
            }
            FieldType::VarInteger(_) | FieldType::Variant(_) => self.other(name, of, scope),
        }
    }

    fn other(&mut self, name: String, of: &FieldType, scope: Scope) {
        self.flush();
        self.steps.push(Step::Other { name, scope, of: of.clone() });
    }

    fn fixed(&mut self, name: String, count: Option<u32>, of: FixedType, scope: Scope) {
        self.align(of.align());
        if let Some(run) = &mut self.run {
            let at = run.bits;
            run.bits = run.bits.saturating_add(of.bits().saturating_mul(count.unwrap_or(1)));
            run.fields.push(FixedField { name, scope, at, count, of });
        }
    }

    fn array(&mut self, name: String, one: &Array, of: &FieldType, scope: Scope) {
        let element = match &*one.element {
            FieldType::Integer(element) => FixedType::Integer(element.clone()),
            FieldType::Float(element) => FixedType::Float(element.clone()),
            _ => return self.other(name, of, scope),
        };
        let is_dense = element.bits() % element.align().max(1) == 0;
        match (&one.length, element) {
            (Length::Fixed(count), element) if is_dense && *count <= MOST_ELEMENTS => {
                self.fixed(name, u32::try_from(*count).ok(), element, scope);
            }
            (Length::Of(Source::Slot(slot)), FixedType::Integer(element))
                if is_dense && element.align >= 8 && matches!(element.bits, 8 | 16 | 32 | 64) =>
            {
                self.flush();
                let (slot, is_text) = (*slot, one.is_text);
                self.steps.push(Step::Sequence { name, scope, slot, element, is_text });
            }
            _ => self.other(name, of, scope),
        }
    }
}
