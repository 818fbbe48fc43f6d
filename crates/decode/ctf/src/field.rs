//! Types of fields in both versions of metadata.

use std::sync::Arc;

use raw_bytes::ByteOrder;

/// The type of a field.
#[derive(Clone, Debug)]
pub enum FieldType {
    /// An integer of a fixed number of bits.
    Integer(Integer),
    /// An integer of variable length (LEB128).
    VarInteger(VarInteger),
    /// A floating-point number.
    Float(Float),
    /// A NUL-terminated string.
    Text(Text),
    /// A sequence of fields.
    Struct(Struct),
    /// Repetitions of a field.
    Array(Array),
    /// One of several fields, or none.
    Variant(Variant),
}

/// The role of a field in the header of a packet or an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// 0xC1FC1FC1.
    Magic,
    /// Id of the packet's stream class.
    StreamId,
    /// Id of the stream in its class.
    StreamInstance,
    /// Size of the packet in bits.
    PacketSize,
    /// Size of its content in bits.
    ContentSize,
    /// The clock at the packet's start.
    Begin,
    /// The clock at its end.
    End,
    /// Events that its stream had lost by its end.
    Discarded,
    /// Number of the packet in its stream.
    Sequence,
    /// The CPU of the packet.
    Cpu,
    /// Id of the event class.
    EventId,
    /// The clock at the event.
    Timestamp,
}

/// A name of a range of integer values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The name.
    pub name: String,
    /// First value of the range.
    pub from: i128,
    /// Last value of the range.
    pub to: i128,
}

/// An integer of a fixed number of bits.
#[derive(Clone, Debug)]
pub struct Integer {
    /// Number of bits: 1 to 64.
    pub bits: u32,
    /// Alignment in bits, a power of two.
    pub align: u32,
    /// Whether it is signed.
    pub signed: bool,
    /// Its byte order.
    pub order: ByteOrder,
    /// Base for printing.
    pub base: u8,
    /// Whether it is a character.
    pub is_text: bool,
    /// Names of values.
    pub labels: Option<Arc<[Label]>>,
    /// The clock that it is a reading of.
    pub clock: Option<Arc<str>>,
    /// Its role.
    pub role: Option<Role>,
    /// Slot for its value, which other fields depend on.
    pub(crate) slot: Option<u16>,
}

impl Integer {
    /// An unsigned integer.
    pub(crate) fn new(bits: u32, align: u32, order: ByteOrder) -> Self {
        Self {
            bits,
            align,
            signed: false,
            order,
            base: 10,
            is_text: false,
            labels: None,
            clock: None,
            role: None,
            slot: None,
        }
    }

    /// Interprets bits as a number.
    #[must_use]
    pub fn value(&self, bits: u64) -> i128 {
        if self.signed { i128::from(crate::bits::signed(bits, self.bits)) } else { bits.into() }
    }
}

/// An integer of variable length.
#[derive(Clone, Debug)]
pub struct VarInteger {
    /// Whether it is signed.
    pub signed: bool,
    /// Names of values.
    pub labels: Option<Arc<[Label]>>,
    /// Its role.
    pub role: Option<Role>,
    pub(crate) slot: Option<u16>,
}

/// A floating-point number of 32 or 64 bits.
#[derive(Clone, Debug)]
pub struct Float {
    /// Number of bits.
    pub bits: u32,
    /// Alignment in bits.
    pub align: u32,
    /// Its byte order.
    pub order: ByteOrder,
}

impl Float {
    /// Interprets bits as a number.
    #[must_use]
    pub fn value(&self, bits: u64) -> f64 {
        // A 32-bit float has only 32 bits.
        if self.bits == 32 { f32::from_bits(bits as u32).into() } else { f64::from_bits(bits) }
    }
}

/// A NUL-terminated string.
#[derive(Clone, Debug)]
pub struct Text;

/// A sequence of fields.
#[derive(Clone, Debug)]
pub struct Struct {
    /// Fields in order of recording.
    pub fields: Vec<Field>,
    /// Alignment in bits.
    pub align: u32,
}

/// A field of a structure.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name, without the prefix that CTF 1.8 adds.
    pub name: String,
    /// Its type.
    pub field_type: FieldType,
}

/// Repetitions of a field.
#[derive(Clone, Debug)]
pub struct Array {
    /// Number of elements.
    pub length: Length,
    /// Type of the elements.
    pub element: Box<FieldType>,
    /// Alignment in bits.
    pub align: u32,
    /// Whether it is a string.
    pub is_text: bool,
}

/// The number of elements of an array.
#[derive(Clone, Debug)]
pub enum Length {
    /// A constant.
    Fixed(u64),
    /// The value of another field.
    Of(Source),
}

/// An earlier field.
#[derive(Clone, Debug)]
pub enum Source {
    /// By its name, relative to its scope or absolute; resolved after parsing.
    Named(Vec<String>),
    /// By the slot of its value.
    Slot(u16),
}

/// One of several fields, or none.
#[derive(Clone, Debug)]
pub struct Variant {
    /// The field that selects the choice.
    pub tag: Source,
    /// All choices.
    pub choices: Vec<Choice>,
    /// Whether it can have no choice.
    pub is_optional: bool,
}

/// One of the fields of a variant.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Its name.
    pub name: String,
    /// The tag's label for it, until the label's values are resolved.
    pub(crate) label: String,
    /// Values of the tag that select it.
    pub ranges: Vec<(i128, i128)>,
    /// Its type.
    pub field_type: FieldType,
}

impl FieldType {
    /// Alignment in bits.
    #[must_use]
    pub fn align(&self) -> u32 {
        match self {
            Self::Integer(integer) => integer.align,
            Self::Float(float) => float.align,
            Self::VarInteger(_) | Self::Text(_) => 8,
            Self::Struct(structure) => structure.align,
            Self::Array(array) => array.align,
            Self::Variant(_) => 1,
        }
    }

    /// The number of types in it, including itself.
    pub(crate) fn nodes(&self) -> usize {
        let below: usize = match self {
            Self::Struct(structure) => {
                structure.fields.iter().map(|field| field.field_type.nodes()).sum()
            }
            Self::Array(array) => array.element.nodes(),
            Self::Variant(variant) => {
                variant.choices.iter().map(|choice| choice.field_type.nodes()).sum()
            }
            _ => 0,
        };
        below.saturating_add(1)
    }

    /// Nesting depth of the types in it.
    pub(crate) fn depth(&self) -> usize {
        let below = match self {
            Self::Struct(structure) => {
                structure.fields.iter().map(|field| field.field_type.depth()).max()
            }
            Self::Array(array) => Some(array.element.depth()),
            Self::Variant(variant) => {
                variant.choices.iter().map(|choice| choice.field_type.depth()).max()
            }
            _ => None,
        };
        below.unwrap_or(0).saturating_add(1)
    }
}

impl Struct {
    pub(crate) fn new(fields: Vec<Field>, at_least: u32) -> Self {
        let of_fields = fields.iter().map(|field| field.field_type.align()).max().unwrap_or(1);
        Self { align: of_fields.max(at_least).max(1), fields }
    }
}

impl Array {
    pub(crate) fn new(length: Length, element: FieldType) -> Self {
        let is_text =
            matches!(&element, FieldType::Integer(integer) if integer.is_text && integer.bits == 8);
        Self { length, align: element.align(), element: Box::new(element), is_text }
    }
}
