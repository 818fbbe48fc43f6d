//! Types of fields, as either version's metadata describe them.

use std::sync::Arc;

use raw_bytes::ByteOrder;

/// The type of a field.
#[derive(Clone, Debug)]
pub enum FieldType {
    /// An integer of a fixed number of bits.
    Integer(Integer),
    /// An integer of as many bytes as it takes (LEB128).
    VarInteger(VarInteger),
    /// A floating-point number.
    Float(Float),
    /// Bytes up to a NUL.
    Text(Text),
    /// Fields one after another.
    Struct(Struct),
    /// The same field many times.
    Array(Array),
    /// One of several fields, or none.
    Variant(Variant),
}

/// The role of a field in the header of a packet or an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// 0xC1FC1FC1.
    Magic,
    /// Which class of streams the packet is of.
    StreamId,
    /// Which stream of its class.
    StreamInstance,
    /// Bits of the packet.
    PacketSize,
    /// Bits of it that are content.
    ContentSize,
    /// The clock when the packet began.
    Begin,
    /// The clock when it ended.
    End,
    /// Events that its stream had lost by then.
    Discarded,
    /// Number of the packet in its stream.
    Sequence,
    /// The CPU it was recorded on.
    Cpu,
    /// Which class of events the event is of.
    EventId,
    /// The clock when it happened.
    Timestamp,
}

/// A name of some values of an integer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The name.
    pub name: String,
    /// The first of the values.
    pub from: i128,
    /// The last of them.
    pub to: i128,
}

/// An integer of a fixed number of bits.
#[derive(Clone, Debug)]
pub struct Integer {
    /// How many bits: 1 to 64.
    pub bits: u32,
    /// The bits it is aligned to, a power of two.
    pub align: u32,
    /// Whether its highest bit is a sign.
    pub signed: bool,
    /// Its byte order.
    pub order: ByteOrder,
    /// The base it is printed in.
    pub base: u8,
    /// Whether it is a character of a text.
    pub is_text: bool,
    /// Names of values.
    pub labels: Option<Arc<[Label]>>,
    /// The clock that it is a reading of.
    pub clock: Option<Arc<str>>,
    /// What it is for.
    pub role: Option<Role>,
    /// Where its value is kept for fields that depend on it.
    pub(crate) slot: Option<u16>,
}

impl Integer {
    /// An unsigned one.
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

    /// The number that the bits are.
    #[must_use]
    pub fn value(&self, bits: u64) -> i128 {
        if self.signed { i128::from(crate::bits::signed(bits, self.bits)) } else { bits.into() }
    }
}

/// An integer of as many bytes as it takes.
#[derive(Clone, Debug)]
pub struct VarInteger {
    /// Whether it can be negative.
    pub signed: bool,
    /// Names of values.
    pub labels: Option<Arc<[Label]>>,
    /// What it is for.
    pub role: Option<Role>,
    pub(crate) slot: Option<u16>,
}

/// A floating-point number of 32 or 64 bits.
#[derive(Clone, Debug)]
pub struct Float {
    /// How many bits.
    pub bits: u32,
    /// The bits it is aligned to.
    pub align: u32,
    /// Its byte order.
    pub order: ByteOrder,
}

impl Float {
    /// The number that the bits are.
    #[must_use]
    pub fn value(&self, bits: u64) -> f64 {
        // Of a short one there are no more bits than these.
        if self.bits == 32 { f32::from_bits(bits as u32).into() } else { f64::from_bits(bits) }
    }
}

/// Bytes up to a NUL.
#[derive(Clone, Debug)]
pub struct Text;

/// Fields one after another.
#[derive(Clone, Debug)]
pub struct Struct {
    /// In the order in which they are recorded.
    pub fields: Vec<Field>,
    /// The bits that it is aligned to.
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

/// The same field many times.
#[derive(Clone, Debug)]
pub struct Array {
    /// How often.
    pub length: Length,
    /// Its type.
    pub element: Box<FieldType>,
    /// The bits that it is aligned to.
    pub align: u32,
    /// Whether it is a text.
    pub is_text: bool,
}

/// How many elements an array has.
#[derive(Clone, Debug)]
pub enum Length {
    /// As the metadata says.
    Fixed(u64),
    /// As another field says.
    Of(Source),
}

/// Another field, which was recorded before.
#[derive(Clone, Debug)]
pub enum Source {
    /// By its name, from within its scope or from outside; found when all is read.
    Named(Vec<String>),
    /// By the place where its value is kept.
    Slot(u16),
}

/// One of several fields, or none.
#[derive(Clone, Debug)]
pub struct Variant {
    /// The field that says which.
    pub tag: Source,
    /// Them all.
    pub choices: Vec<Choice>,
    /// Whether it may be none of them.
    pub is_optional: bool,
}

/// One of the fields of a variant.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Its name.
    pub name: String,
    /// What the tag's labels call it, until its values are known.
    pub(crate) label: String,
    /// Values of the tag for which it is taken.
    pub ranges: Vec<(i128, i128)>,
    /// Its type.
    pub field_type: FieldType,
}

impl FieldType {
    /// The bits that it is aligned to.
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

    /// How many types it is made of, itself included.
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

    /// How deep types lie in it.
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
