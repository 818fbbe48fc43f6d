//! Event headers: the event's id and time.

use raw_bytes::ByteOrder;

use crate::Short;
use crate::field::{FieldType, Float, Integer, Label, Role, Source, Struct};
use crate::steps::{self, FixedType, Step};
use crate::walk::{Visit, Walker};

/// How to read an event header.
#[derive(Clone, Debug, Default)]
pub(crate) enum HeaderPlan {
    /// There is no header.
    #[default]
    None,
    /// Fields at fixed positions.
    Fixed(FixedHead),
    /// A tag that selects fields at fixed positions, as in LTTng.
    Tagged { tag: Integer, heads: Vec<(Vec<(i128, i128)>, FixedHead)> },
    /// Any other header.
    Any(Struct),
}

/// Fields at fixed positions.
#[derive(Clone, Debug)]
pub(crate) struct FixedHead {
    pub(crate) align: u32,
    pub(crate) bits: u32,
    pub(crate) id: Option<(u32, Integer)>,
    pub(crate) time: Option<(u32, Integer)>,
}

/// The content of an event's header.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Head {
    pub(crate) id: u64,
    /// The recorded bits of the clock, and their mask.
    pub(crate) time: Option<(u64, u64)>,
}

impl HeaderPlan {
    pub(crate) fn new(header: Option<&Struct>) -> Self {
        let Some(header) = header else { return Self::None };
        FixedHead::new(header)
            .map(Self::Fixed)
            .or_else(|| Self::tagged(header))
            .unwrap_or_else(|| Self::Any(header.clone()))
    }

    fn tagged(header: &Struct) -> Option<Self> {
        let [tag, choices] = header.fields.as_slice() else { return None };
        let (FieldType::Integer(tag), FieldType::Variant(variant)) =
            (&tag.field_type, &choices.field_type)
        else {
            return None;
        };
        let Source::Slot(slot) = variant.tag else { return None };
        if tag.role != Some(Role::EventId) || tag.slot != Some(slot) {
            return None;
        }
        let head = |choice: &crate::field::Choice| match &choice.field_type {
            FieldType::Struct(structure) => {
                Some((choice.ranges.clone(), FixedHead::new(structure)?))
            }
            _ => None,
        };
        let heads = variant.choices.iter().map(head).collect::<Option<_>>()?;
        // The structure's alignment applies to the tag, its first field.
        let tag = Integer { align: tag.align.max(header.align), ..tag.clone() };
        Some(Self::Tagged { tag, heads })
    }

    #[inline]
    pub(crate) fn read(&self, walker: &mut Walker<'_, '_>) -> Result<Head, Short> {
        match self {
            Self::None => Ok(Head::default()),
            Self::Fixed(fixed) => fixed.read(walker, 0),
            Self::Tagged { tag, heads } => {
                let value = walker.integer(tag)?;
                let is_in = |ranges: &[(i128, i128)]| {
                    ranges.iter().any(|&(from, to)| from <= value && value <= to)
                };
                let head = heads.iter().find(|(ranges, _)| is_in(ranges));
                let at = walker.cursor.at();
                let (_, head) =
                    head.ok_or(Short { at, what: "the kind of an event's header is unknown" })?;
                head.read(walker, u64::try_from(value).unwrap_or(u64::MAX))
            }
            Self::Any(header) => {
                let mut found = HeadReader::default();
                walker.fields(header, &mut found)?;
                Ok(found.head)
            }
        }
    }
}

impl FixedHead {
    /// `None` if fields have variable length, or if others depend on them.
    fn new(structure: &Struct) -> Option<Self> {
        let steps = steps::of_struct(structure);
        let [Step::Fixed { align, bits, fields, .. }] = steps.as_slice() else { return None };
        let mut head = Self { align: *align, bits: *bits, id: None, time: None };
        for field in fields {
            let FixedType::Integer(integer) = &field.field_type else { continue };
            if integer.slot.is_some() {
                return None;
            }
            match integer.role {
                Some(Role::EventId) => head.id = Some((field.at, integer.clone())),
                Some(Role::Timestamp) => head.time = Some((field.at, integer.clone())),
                _ => {}
            }
        }
        Some(head)
    }

    /// The byte order of the id, or of the time stamp if there is no id.
    pub(crate) fn order(&self) -> Option<ByteOrder> {
        self.id.as_ref().or(self.time.as_ref()).map(|(_, integer)| integer.order)
    }

    #[inline]
    fn read(&self, walker: &mut Walker<'_, '_>, id: u64) -> Result<Head, Short> {
        walker.cursor.align(self.align)?;
        let begin = walker.cursor.take(self.bits.into())?;
        let cursor = walker.cursor;
        let read = |place: &Option<(u32, Integer)>| {
            let (at, integer) = place.as_ref()?;
            let at = begin.saturating_add(u64::from(*at));
            Some((cursor.unsigned_at(at, integer.bits, integer.order)?, mask(integer.bits)))
        };
        Ok(Head { id: read(&self.id).map_or(id, |(id, _)| id), time: read(&self.time) })
    }
}

/// A mask with this many ones.
pub(crate) fn mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// The values found in a header.
#[derive(Default)]
struct HeadReader {
    head: Head,
}

impl Visit for HeadReader {
    fn integer(&mut self, _: &str, value: i128, integer: Option<&Integer>, _: Option<&[Label]>) {
        let Some(integer) = integer else { return };
        let value = value as u64;
        match integer.role {
            Some(Role::EventId) => self.head.id = value,
            Some(Role::Timestamp) => self.head.time = Some((value, mask(integer.bits))),
            _ => {}
        }
    }

    fn float(&mut self, _: &str, _: f64, _: &Float) {}
    fn text(&mut self, _: &str, _: &[u8]) {}
    fn begin(&mut self, _: &str, _: bool) {}
    fn end(&mut self, _: bool) {}
}
