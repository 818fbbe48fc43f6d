//! The events of a packet, one after another.

use std::ops::Range;

use crate::field::{Integer, Struct};
use crate::steps::Step;
use crate::walk::{Printed, Visit, Walker};
use crate::{Cursor, EventClass, Layout, Packet, Short, StreamClass};

/// An event, up to where what it has behind its head begins.
#[derive(Clone, Copy, Debug)]
pub struct Event<'l> {
    /// The index of its class among those of its stream.
    pub index: usize,
    /// Its class.
    pub class: &'l EventClass,
    /// The clock when it happened; where it doesn't say, that of what came before.
    pub cycles: u64,
}

/// What a step of an event has.
#[derive(Debug)]
pub enum Taken<'a, 'p> {
    /// A run begins at this bit of the packet.
    Fixed(Cursor<'a>, u64),
    /// A text, without its NUL, or the bytes of a sequence.
    Bytes(&'a [u8]),
    /// Any other field, as text.
    Printed(&'p str),
}

/// The events of a packet.
#[derive(Debug)]
pub struct Events<'a> {
    stream: &'a StreamClass,
    cursor: Cursor<'a>,
    slots: Vec<i128>,
    cycles: u64,
    printed: Printed,
    /// Fields of the last event that have not been read.
    pending: Option<&'a EventClass>,
    /// Where the last event begins.
    event_at: u64,
    is_at_end: bool,
}

impl<'a> Events<'a> {
    /// The events of a packet, of which `bytes` is all; none: its class of streams is not of this layout.
    #[must_use]
    pub fn new(layout: &'a Layout, packet: &Packet, bytes: &'a [u8]) -> Option<Self> {
        let slots = vec![0; layout.slots];
        let mut events = Self {
            stream: layout.streams.get(packet.stream)?,
            cursor: Cursor::new(bytes, packet.events_at, packet.content),
            slots,
            cycles: packet.begin.unwrap_or(0),
            printed: Printed::default(),
            pending: None,
            event_at: 0,
            is_at_end: false,
        };
        events.keep_head(layout, bytes, packet);
        Some(events)
    }

    /// Only those of these bits of the packet, of which the first begins an event; the clock before it
    /// was `cycles`.
    #[must_use]
    pub fn within(
        mut self,
        packet: &Packet,
        bits: Range<u64>,
        bytes: &'a [u8],
        cycles: u64,
    ) -> Self {
        self.cursor = Cursor::new(bytes, bits.start, bits.end.min(packet.content));
        self.cycles = cycles;
        self
    }

    /// The bit of the packet where the last event begins.
    #[must_use]
    pub fn event_at(&self) -> u64 {
        self.event_at
    }

    /// Values of the packet's head that events' fields depend on.
    fn keep_head(&mut self, layout: &Layout, bytes: &[u8], packet: &Packet) {
        if self.slots.is_empty() {
            return;
        }
        let cursor = Cursor::new(bytes, 0, packet.content);
        let mut walker = Walker { cursor, slots: &mut self.slots };
        let heads: [Option<&Struct>; 2] =
            [layout.packet_header.as_ref(), self.stream.packet_context.as_ref()];
        for head in heads.into_iter().flatten() {
            // They were read when the packet was found.
            let _ = walker.fields(head, &mut Printed::default());
        }
    }

    /// The next event; none: there is no more. What the last one has and was not read is passed over.
    /// Behind an error there is nothing more.
    #[inline]
    pub fn next_event(&mut self) -> Option<Result<Event<'a>, Short>> {
        if self.is_at_end {
            return None;
        }
        let event = self.event();
        self.is_at_end = !matches!(event, Ok(Some(_)));
        event.transpose()
    }

    #[inline]
    fn event(&mut self) -> Result<Option<Event<'a>>, Short> {
        if self.pending.is_some() {
            self.take(|_, _, _| ())?;
        }
        if self.cursor.left() == 0 {
            return Ok(None);
        }
        let at = self.cursor.at();
        let mut walker = Walker { cursor: self.cursor, slots: &mut self.slots };
        let head = self.stream.header.read(&mut walker)?;
        self.cursor = walker.cursor;
        if let Some((value, bits)) = head.time {
            self.cycles = advanced(self.cycles, value, bits);
        }
        let unknown = Short { at, what: "an event has an id that the metadata don't know" };
        let index = self.stream.event_index(head.id).ok_or(unknown)?;
        let class = self.stream.events.get(index).ok_or(unknown)?;
        (self.pending, self.event_at) = (Some(class), at);
        Ok(Some(Event { index, class, cycles: self.cycles }))
    }

    /// Calls `take` with each step of the last event.
    ///
    /// # Errors
    /// When the content ends within it.
    #[inline]
    pub fn take(&mut self, mut take: impl FnMut(usize, &Step, Taken<'a, '_>)) -> Result<(), Short> {
        let Some(class) = self.pending.take() else { return Ok(()) };
        let taken = class.steps.iter().enumerate().try_for_each(|(index, step)| {
            let taken = self.step(step)?;
            take(index, step, taken);
            Ok(())
        });
        self.is_at_end |= taken.is_err();
        taken.and_then(|()| self.took_bits())
    }

    /// Of events that take no bits there would be no end.
    #[inline]
    fn took_bits(&mut self) -> Result<(), Short> {
        if self.cursor.at() > self.event_at {
            return Ok(());
        }
        self.is_at_end = true;
        Err(Short { at: self.event_at, what: "an event takes no bits" })
    }

    #[inline]
    fn step(&mut self, step: &Step) -> Result<Taken<'a, '_>, Short> {
        match step {
            Step::Fixed { align, bits, kept, .. } => {
                self.cursor.align(*align)?;
                let at = self.cursor.take((*bits).into())?;
                self.keep(at, kept);
                Ok(Taken::Fixed(self.cursor, at))
            }
            Step::Text { .. } => {
                self.cursor.align(8)?;
                Ok(Taken::Bytes(self.cursor.take_text()?))
            }
            Step::Sequence { slot, element, .. } => {
                self.cursor.align(element.align)?;
                let count = self.slots.get(usize::from(*slot)).copied().unwrap_or(0);
                let count = u64::try_from(count).unwrap_or(u64::MAX);
                let len = count.saturating_mul(u64::from(element.bits / 8));
                Ok(Taken::Bytes(self.cursor.take_bytes(len)?))
            }
            Step::Other { of, .. } => {
                self.printed.text.clear();
                let mut walker = Walker { cursor: self.cursor, slots: &mut self.slots };
                walker.field("", of, &mut self.printed)?;
                self.cursor = walker.cursor;
                Ok(Taken::Printed(&self.printed.text))
            }
        }
    }

    fn keep(&mut self, at: u64, kept: &[(u32, Integer)]) {
        for (from, one) in kept {
            let raw =
                self.cursor.unsigned_at(at.saturating_add((*from).into()), one.bits, one.order);
            let slot = one.slot.and_then(|slot| self.slots.get_mut(usize::from(slot)));
            if let Some((raw, slot)) = raw.zip(slot) {
                *slot = one.value(raw);
            }
        }
    }

    /// Visits all values that the last event has behind its head.
    ///
    /// # Errors
    /// When the content ends within it.
    pub fn visit(&mut self, visit: &mut dyn Visit) -> Result<(), Short> {
        let Some(class) = self.pending.take() else { return Ok(()) };
        let scopes =
            [&self.stream.event_context, &class.context, &class.payload].into_iter().flatten();
        let mut walker = Walker { cursor: self.cursor, slots: &mut self.slots };
        for fields in scopes {
            visit.begin("", false);
            if let Err(error) = walker.fields(fields, visit) {
                self.is_at_end = true;
                return Err(error);
            }
            visit.end(false);
        }
        self.cursor = walker.cursor;
        self.took_bits()
    }
}

/// A clock whose lowest `bits` have become `value`: it goes on, so what would be earlier has counted round.
#[inline]
fn advanced(before: u64, value: u64, bits: u32) -> u64 {
    if bits >= 64 {
        return value;
    }
    let step = 1_u64 << bits;
    let (low, high) = (before & (step - 1), before & !(step - 1));
    let now = high | (value & (step - 1));
    if value < low { now.wrapping_add(step) } else { now }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_of_few_bits_counts_round() {
        assert_eq!(advanced(0x1_0000_00f0, 0xf5, 8), 0x1_0000_00f5);
        assert_eq!(advanced(0x1_0000_00f0, 0x05, 8), 0x1_0000_0105);
        assert_eq!(advanced(0x1_0000_00f0, 0xf0, 8), 0x1_0000_00f0);
        assert_eq!(advanced(7, 3, 64), 3);
    }
}
