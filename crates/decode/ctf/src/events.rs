//! The events of a packet, one after another.

use std::ops::Range;

use crate::field::Struct;
use crate::header::Head;
use crate::steps::Step;
use crate::walk::{Nothing, Printed, Visit, Walker};
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
            let _ = walker.fields(head, &mut Nothing);
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
        self.pass()?;
        if self.cursor.remaining() == 0 {
            return Ok(None);
        }
        let at = self.cursor.at();
        let head = self.head()?;
        if let Some((value, mask)) = head.time {
            self.cycles = advanced(self.cycles, value, mask);
        }
        let unknown = Short { at, what: "an event has an id that the metadata does not define" };
        let index = self.stream.event_index(head.id).ok_or(unknown)?;
        let class = self.stream.events.get(index).ok_or(unknown)?;
        (self.pending, self.event_at) = (Some(class), at);
        Ok(Some(Event { index, class, cycles: self.cycles }))
    }

    #[inline]
    fn head(&mut self) -> Result<Head, Short> {
        let mut walker = Walker { cursor: self.cursor, slots: &mut self.slots };
        let (bytes, end) = self.cursor.all();
        if let Some(skim) = &self.stream.skim.head
            && let Some(head) = skim.read(bytes, self.cursor.at())
            && head.end <= end
        {
            skim.keep(&head, &mut walker);
            self.cursor.go_to(head.end);
            return Ok(Head { id: head.id, time: head.time });
        }
        let head = self.stream.header.read(&mut walker)?;
        self.cursor = walker.cursor;
        Ok(head)
    }

    /// Passes over what the last event has and was not read.
    #[inline]
    fn pass(&mut self) -> Result<(), Short> {
        let Some(class) = self.pending.take() else { return Ok(()) };
        match self.stream.skim.event(class.id) {
            Some(skim) => {
                let mut walker = Walker { cursor: self.cursor, slots: &mut self.slots };
                let passed = skim.pass(&mut walker);
                self.cursor = walker.cursor;
                passed?;
                self.took_bits()
            }
            None => {
                self.pending = Some(class);
                self.take(|_, _, _| ())
            }
        }
    }

    /// Calls `take` with the index of the class of each event that is left, and with its clock. That is
    /// faster than [`Events::next_event`], and gives the same.
    ///
    /// # Errors
    /// When the content ends within an event, or one is of no class.
    pub fn heads(&mut self, mut take: impl FnMut(usize, u64)) -> Result<(), Short> {
        loop {
            // Where the fast way ends, the other one says why, or goes on.
            self.fast_heads(&mut |class, cycles| {
                take(class, cycles);
                true
            });
            let Some(event) = self.next_event() else { return Ok(()) };
            let event = event?;
            take(event.index, event.cycles);
            if let Err(short) = self.pass() {
                self.is_at_end = true;
                return Err(short);
            }
        }
    }

    /// The next event of the classes that `is_wanted` says by their indices. Those before it are passed over.
    pub fn next_of(
        &mut self,
        is_wanted: impl Fn(usize) -> bool,
    ) -> Option<Result<Event<'a>, Short>> {
        loop {
            if let Err(short) = self.pass() {
                self.is_at_end = true;
                return Some(Err(short));
            }
            self.fast_heads(&mut |class, _| !is_wanted(class));
            match self.next_event()? {
                Ok(event) if !is_wanted(event.index) => {}
                event => return Some(event),
            }
        }
    }

    /// Passes over events up to one that has to be walked over, or is damaged, or that `take` doesn't.
    #[inline]
    fn fast_heads(&mut self, take: &mut impl FnMut(usize, u64) -> bool) {
        let skim = &self.stream.skim;
        let Some(heads) = skim.head.as_ref().filter(|_| self.pending.is_none()) else { return };
        let (bytes, end) = self.cursor.all();
        let (mut at, mut cycles, mut event_at) = (self.cursor.at(), self.cycles, self.event_at);
        while at < end && !self.is_at_end {
            let Some(head) = heads.read(bytes, at) else { break };
            let Some(event) = skim.event(head.id) else { break };
            let begin = head.end.saturating_add(event.below) & !event.below;
            let mut to = begin.saturating_add(event.bits);
            if to > end {
                break;
            }
            if !event.rest.is_empty() {
                let mut walker = Walker { cursor: self.cursor, slots: &mut self.slots };
                walker.cursor.go_to(to);
                heads.keep(&head, &mut walker);
                if event.pass_rest(&mut walker).is_err() {
                    break;
                }
                to = walker.cursor.at();
            }
            let now = match head.time {
                Some((value, mask)) => advanced(cycles, value, mask),
                None => cycles,
            };
            if !take(event.index, now) {
                break;
            }
            (event_at, at, cycles) = (at, to, now);
        }
        self.cursor.go_to(at);
        (self.cycles, self.event_at) = (cycles, event_at);
    }

    /// Calls `take` with each step of the last event.
    ///
    /// # Errors
    /// When the content ends within it.
    #[inline]
    pub fn take(&mut self, mut take: impl FnMut(usize, &Step, Taken<'a, '_>)) -> Result<(), Short> {
        let Some(class) = self.pending.take() else { return Ok(()) };
        let result = class.steps.iter().enumerate().try_for_each(|(index, step)| {
            let value = self.step(step)?;
            take(index, step, value);
            Ok(())
        });
        self.is_at_end |= result.is_err();
        result.and_then(|()| self.took_bits())
    }

    /// The bytes of all that the last event has behind its head, where these are one run of fields. None: they
    /// are not, or are cut; it can be taken otherwise.
    #[inline]
    pub fn take_run(&mut self) -> Option<&'a [u8]> {
        let skim = self.stream.skim.event(self.pending?.id)?;
        if !skim.rest.is_empty() || !skim.bits.is_multiple_of(8) {
            return None;
        }
        let mut cursor = self.cursor;
        cursor.align_below(skim.below).ok()?;
        let bytes = cursor.take_bytes(skim.bits / 8).ok()?;
        if cursor.at() <= self.event_at {
            return None;
        }
        (self.pending, self.cursor) = (None, cursor);
        Some(bytes)
    }

    /// Of events that take no bits there would be no end.
    #[inline]
    fn took_bits(&mut self) -> Result<(), Short> {
        if self.cursor.at() > self.event_at {
            return Ok(());
        }
        self.is_at_end = true;
        Err(Short { at: self.event_at, what: "an event has a size of 0 bits" })
    }

    #[inline]
    fn step(&mut self, step: &Step) -> Result<Taken<'a, '_>, Short> {
        match step {
            Step::Fixed { align, bits, slot_fields, .. } => {
                self.cursor.align(*align)?;
                let at = self.cursor.take((*bits).into())?;
                let mut walker = Walker { cursor: self.cursor, slots: &mut self.slots };
                walker.keep_all(at, slot_fields);
                Ok(Taken::Fixed(self.cursor, at))
            }
            Step::Text { .. } => {
                self.cursor.align(8)?;
                Ok(Taken::Bytes(self.cursor.take_text()?))
            }
            Step::Sequence { slot, element, .. } => {
                self.cursor.align(element.align)?;
                let walker = Walker { cursor: self.cursor, slots: &mut self.slots };
                let len = walker.count(*slot).saturating_mul(u64::from(element.bits / 8));
                Ok(Taken::Bytes(self.cursor.take_bytes(len)?))
            }
            Step::Other { field_type, .. } => {
                self.printed.text.clear();
                let mut walker = Walker { cursor: self.cursor, slots: &mut self.slots };
                walker.field("", field_type, &mut self.printed)?;
                self.cursor = walker.cursor;
                Ok(Taken::Printed(&self.printed.text))
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

/// A clock whose lowest bits, those of `mask`, have become `value`: it goes on, so what would be earlier has
/// counted round.
#[inline]
fn advanced(before: u64, value: u64, mask: u64) -> u64 {
    before.wrapping_add(value.wrapping_sub(before) & mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_of_few_bits_counts_round() {
        assert_eq!(advanced(0x1_0000_00f0, 0xf5, 0xff), 0x1_0000_00f5);
        assert_eq!(advanced(0x1_0000_00f0, 0x05, 0xff), 0x1_0000_0105);
        assert_eq!(advanced(0x1_0000_00f0, 0xf0, 0xff), 0x1_0000_00f0);
        assert_eq!(advanced(7, 3, u64::MAX), 3);
    }
}
