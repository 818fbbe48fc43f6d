//! Iterates over the events of a packet.

use std::ops::Range;

use crate::field::Struct;
use crate::header::Head;
use crate::steps::Step;
use crate::walk::{Nothing, Printed, Visit, Walker};
use crate::{Cursor, EventClass, Layout, Packet, Short, StreamClass};

/// An event after its header has been read.
#[derive(Clone, Copy, Debug)]
pub struct Event<'l> {
    /// Index of its class in its stream class.
    pub index: usize,
    /// The event class.
    pub class: &'l EventClass,
    /// The clock at the event; without a time stamp, the clock at the previous event.
    pub cycles: u64,
}

/// The data of a step of an event.
#[derive(Debug)]
pub enum Taken<'a, 'p> {
    /// A run that begins at this bit of the packet.
    Fixed(Cursor<'a>, u64),
    /// A string without its NUL, or the bytes of a sequence.
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
    /// Class of the last event while its fields are unread.
    pending: Option<&'a EventClass>,
    /// Position of the last event.
    event_at: u64,
    is_at_end: bool,
}

impl<'a> Events<'a> {
    /// The events of a packet with the content `bytes`; `None` if the layout does not have its
    /// stream class.
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

    /// Restricts the iterator to these bits of the packet, which begin with an event; `cycles` is
    /// the clock before it.
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

    /// The bit at which the last event begins.
    #[must_use]
    pub fn event_at(&self) -> u64 {
        self.event_at
    }

    /// Stores values of the packet header that fields of events depend on.
    fn keep_head(&mut self, layout: &Layout, bytes: &[u8], packet: &Packet) {
        if self.slots.is_empty() {
            return;
        }
        let cursor = Cursor::new(bytes, 0, packet.content);
        let mut walker = Walker { cursor, slots: &mut self.slots };
        let heads: [Option<&Struct>; 2] =
            [layout.packet_header.as_ref(), self.stream.packet_context.as_ref()];
        for head in heads.into_iter().flatten() {
            // Errors were reported when the packet header was read.
            let _ = walker.fields(head, &mut Nothing);
        }
    }

    /// The next event; `None` at the end. Skips unread fields of the last event. After an error
    /// there are no more events.
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

    /// Skips unread fields of the last event.
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

    /// Calls `take` with the class index and the clock of each remaining event. Faster than
    /// [`Events::next_event`], with the same result.
    ///
    /// # Errors
    /// If the content ends within an event, or if an event has no class.
    pub fn heads(&mut self, mut take: impl FnMut(usize, u64)) -> Result<(), Short> {
        loop {
            // When the fast path ends, the slow path finds the error, or continues.
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

    /// The next event whose class index satisfies `is_wanted`. Skips events before it.
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

    /// Skips events up to one that needs the slow path, is damaged, or is refused by `take`.
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
    /// If the content ends within it.
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

    /// The bytes of the last event after its header, if they are a single run of fields. `None`
    /// otherwise, or if they are truncated; `take` handles these cases.
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

    /// Refuses empty events, because an infinite number of them fits into a packet.
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

    /// Visits all values of the last event after its header.
    ///
    /// # Errors
    /// If the content ends within it.
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

/// The clock after its lowest bits, those of `mask`, have become `value`: the clock never goes
/// back, so a lower value means a wrap.
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
