//! Plans for fast skipping of events: by stream class, the positions of numbers in event headers,
//! and the length of the data after the header. Fields at fixed positions are one step, however
//! many they are.
//!
//! Layouts without a plan (other kinds of headers, positions that depend on an alignment) are read
//! field by field. The same applies to an event that is too short for its plan: the field reader
//! reports the exact fault.

use raw_bytes::ByteOrder;

use crate::Short;
use crate::field::{FieldType, Integer};
use crate::header::{FixedHead, HeaderPlan, mask};
use crate::layout::EventClass;
use crate::steps::Step;
use crate::walk::{Nothing, Walker};

/// Maximum unused ids in the table of events.
const MAX_GAPS: usize = 1 << 10;
/// Maximum alignment and length of a header in bits; tracers have 128.
const MAX_HEAD_BITS: u32 = 1 << 12;

/// How to skip the events of a stream class.
#[derive(Clone, Debug, Default)]
pub(crate) struct Skim {
    pub(crate) head: Option<HeadSkim>,
    /// Events by id.
    events: Vec<Option<EventSkim>>,
}

/// Positions of the numbers in event headers, relative to the byte at which they begin.
#[derive(Clone, Debug)]
pub(crate) struct HeadSkim {
    /// Alignment of a header in bits, minus one.
    below: u64,
    order: ByteOrder,
    tag: Option<(Load, Integer)>,
    /// By range of tag values: the first and last value.
    places: Vec<(u64, u64, HeadPlaces)>,
}

/// Positions of the numbers in one kind of header.
#[derive(Clone, Copy, Debug)]
struct HeadPlaces {
    bits: u64,
    id: Option<Load>,
    time: Option<Load>,
}

/// A number in a header, extracted from the eight bytes at an offset.
#[derive(Clone, Copy, Debug)]
struct Load {
    byte: u32,
    shift: u32,
    mask: u64,
}

/// An event header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Skimmed {
    pub(crate) tag: u64,
    pub(crate) id: u64,
    /// The recorded bits of the clock, and their mask.
    pub(crate) time: Option<(u64, u64)>,
    /// The bit after the header.
    pub(crate) end: u64,
}

/// How to skip the data of an event after its header.
#[derive(Clone, Debug)]
pub(crate) struct EventSkim {
    /// Index of the event in its stream class.
    pub(crate) index: usize,
    /// Alignment minus one, and length in bits, of the first run after the header.
    pub(crate) below: u64,
    pub(crate) bits: u64,
    /// How to skip the rest.
    pub(crate) rest: Vec<Move>,
}

/// How to skip a part of an event.
#[derive(Clone, Debug)]
pub(crate) enum Move {
    Run { align: u32, bits: u64, slot_fields: Vec<(u32, Integer)> },
    Text,
    Sequence { slot: u16, align: u32, element_bytes: u64 },
    Other(FieldType),
}

impl Skim {
    pub(crate) fn new(header: &HeaderPlan, events: &[EventClass]) -> Self {
        let head = HeadSkim::new(header);
        let ids = || events.iter().filter_map(|event| usize::try_from(event.id).ok());
        let fits = |id: &usize| *id < events.len().saturating_add(MAX_GAPS);
        let len = ids().filter(fits).max().map_or(0, |id| id + 1);
        let mut all = vec![None; len];
        for (index, event) in events.iter().enumerate() {
            let place = usize::try_from(event.id).ok().and_then(|id| all.get_mut(id));
            if let Some(place) = place {
                *place = Some(EventSkim::new(index, &event.steps));
            }
        }
        Self { head, events: all }
    }

    #[inline]
    pub(crate) fn event(&self, id: u64) -> Option<&EventSkim> {
        self.events.get(usize::try_from(id).ok()?)?.as_ref()
    }
}

impl EventSkim {
    fn new(index: usize, steps: &[Step]) -> Self {
        let mut rest: Vec<Move> = steps.iter().map(Move::new).collect();
        let (mut below, mut bits) = (0, 0);
        if let Some(Move::Run { align, bits: first, slot_fields }) = rest.first()
            && slot_fields.is_empty()
        {
            (below, bits) = (u64::from((*align).max(1)) - 1, *first);
            rest.remove(0);
        }
        Self { index, below, bits, rest }
    }

    /// Skips all data of the event.
    #[inline]
    pub(crate) fn pass(&self, walker: &mut Walker<'_, '_>) -> Result<(), Short> {
        walker.cursor.align_below(self.below)?;
        walker.cursor.take(self.bits)?;
        self.pass_rest(walker)
    }

    /// Skips the data after the first run.
    pub(crate) fn pass_rest(&self, walker: &mut Walker<'_, '_>) -> Result<(), Short> {
        self.rest.iter().try_for_each(|part| part.pass(walker))
    }
}

impl Move {
    fn new(step: &Step) -> Self {
        match step {
            Step::Fixed { align, bits, slot_fields, .. } => {
                Self::Run { align: *align, bits: (*bits).into(), slot_fields: slot_fields.clone() }
            }
            Step::Text { .. } => Self::Text,
            Step::Sequence { slot, element, .. } => Self::Sequence {
                slot: *slot,
                align: element.align,
                element_bytes: (element.bits / 8).into(),
            },
            Step::Other { field_type, .. } => Self::Other(field_type.clone()),
        }
    }

    /// Skips the part, and stores values that later parts depend on.
    pub(crate) fn pass(&self, walker: &mut Walker<'_, '_>) -> Result<(), Short> {
        match self {
            Self::Run { align, bits, slot_fields } => {
                walker.cursor.align(*align)?;
                let at = walker.cursor.take(*bits)?;
                walker.keep_all(at, slot_fields);
            }
            Self::Text => {
                walker.cursor.align(8)?;
                walker.cursor.take_text()?;
            }
            Self::Sequence { slot, align, element_bytes } => {
                walker.cursor.align(*align)?;
                let len = walker.count(*slot).saturating_mul(*element_bytes);
                walker.cursor.take_bytes(len)?;
            }
            Self::Other(field_type) => walker.field("", field_type, &mut Nothing)?,
        }
        Ok(())
    }
}

impl HeadSkim {
    fn new(header: &HeaderPlan) -> Option<Self> {
        match header {
            HeaderPlan::Fixed(head) => {
                let (below, order) = (byte_aligned(head.align)?, head.order()?);
                let places = HeadPlaces::new(head, 0, head.align, order)?;
                Some(Self { below, order, tag: None, places: vec![(0, u64::MAX, places)] })
            }
            HeaderPlan::Tagged { tag, heads } if !tag.signed => {
                let (below, order) = (byte_aligned(tag.align)?, tag.order);
                let mut places = Vec::new();
                for (ranges, head) in heads {
                    let head_places = HeadPlaces::new(head, tag.bits, tag.align, order)?;
                    for &(from, to) in ranges.iter().filter(|(from, to)| from <= to) {
                        let to = u64::try_from(to).unwrap_or(u64::MAX);
                        places.push((u64::try_from(from).ok()?, to, head_places));
                    }
                }
                let load = Load::new(0, tag, order)?;
                Some(Self { below, order, tag: Some((load, tag.clone())), places })
            }
            _ => None,
        }
    }

    /// The header of the event after bit `at`; `None` if it needs the field reader.
    #[inline(always)]
    pub(crate) fn read(&self, bytes: &[u8], at: u64) -> Option<Skimmed> {
        let at = at.checked_add(self.below)? & !self.below;
        let rest = bytes.get(usize::try_from(at / 8).ok()?..)?;
        // In most headers, these eight bytes contain all numbers.
        let first = self.order.u64(*rest.first_chunk()?);
        let read = |load: &Load| load.read(rest, first, self.order);
        let tag = match &self.tag {
            Some((load, _)) => read(load)?,
            None => 0,
        };
        let is_of = |place: &&(u64, u64, HeadPlaces)| place.0 <= tag && tag <= place.1;
        let (_, _, places) = self.places.iter().find(is_of)?;
        let id = match &places.id {
            Some(load) => read(load)?,
            None => tag,
        };
        let time = match &places.time {
            Some(load) => Some((read(load)?, load.mask)),
            None => None,
        };
        Some(Skimmed { tag, id, time, end: at.checked_add(places.bits)? })
    }

    /// Stores the tag if other fields depend on it.
    #[inline]
    pub(crate) fn keep(&self, head: &Skimmed, walker: &mut Walker<'_, '_>) {
        if let Some((_, tag)) = &self.tag {
            walker.keep(tag.slot, head.tag.into());
        }
    }
}

/// The alignment minus one, if it is a multiple of bytes.
fn byte_aligned(align: u32) -> Option<u64> {
    let is_known = align.is_power_of_two() && (8..=MAX_HEAD_BITS).contains(&align);
    is_known.then(|| u64::from(align) - 1)
}

impl HeadPlaces {
    /// Positions for a header that follows `before` bits of a position with alignment `align`.
    fn new(head: &FixedHead, before: u32, align: u32, order: ByteOrder) -> Option<Self> {
        let is_known = head.align.is_power_of_two() && head.align <= align;
        if !is_known || head.bits > MAX_HEAD_BITS || before > MAX_HEAD_BITS {
            return None;
        }
        let from = before.next_multiple_of(head.align);
        let load = |place: &Option<(u32, Integer)>| match place {
            Some((at, integer)) => Load::new(from + at, integer, order).map(Some),
            None => Some(None),
        };
        let (id, time) = (load(&head.id)?, load(&head.time)?);
        let bits = u64::from(from + head.bits);
        (bits > 0).then_some(Self { bits, id, time })
    }
}

impl Load {
    /// The position of a number; `None` if it spans more than eight bytes, or has another byte
    /// order.
    fn new(at: u32, integer: &Integer, order: ByteOrder) -> Option<Self> {
        let skip = at % 8;
        let above = 64_u32.checked_sub(skip)?.checked_sub(integer.bits)?;
        let shift = if order == ByteOrder::Little { skip } else { above };
        (integer.order == order).then_some(Self { byte: at / 8, shift, mask: mask(integer.bits) })
    }

    /// Reads the number from a header whose first eight bytes are `first`.
    #[inline(always)]
    fn read(&self, rest: &[u8], first: u64, order: ByteOrder) -> Option<u64> {
        let eight = match self.byte {
            0 => first,
            byte => order.u64(*rest.get(byte as usize..)?.first_chunk()?),
        };
        Some(eight >> self.shift & self.mask)
    }
}

#[cfg(test)]
mod tests;
