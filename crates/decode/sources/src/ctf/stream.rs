//! A CPU of a trace, whose packets are converted to records on demand.

use std::ops::Range;
use std::sync::Arc;

use ctf::{ByteOrder, Cursor, Events, Layout, Step, Taken};
use ftrace::ringbuf::Missed;
use sys::FileMap;

use super::clocks::{Clocks, ToNs};
use super::parts::Part;
use super::shape::{COMM_BYTES, HEAD_BYTES, How, PID_AT, Piece, Plan, Shape};
use super::threads::{Threads, never_known};
use crate::Damage;
use crate::records::{RecordList, RecordSource};

/// Data that the streams of a trace share.
#[derive(Debug)]
pub(super) struct Trace {
    pub(super) layout: Layout,
    pub(super) files: Vec<FileMap>,
    /// By stream class and event class.
    pub(super) shapes: Vec<Vec<Shape>>,
    pub(super) order: ByteOrder,
    pub(super) clocks: Clocks,
}

/// A CPU of a trace.
#[derive(Debug)]
pub(super) struct CtfStream {
    pub(super) cpu: u32,
    trace: Arc<Trace>,
    pub(super) parts: Vec<Part>,
    blocks: Vec<Range<usize>>,
    threads: Threads,
}

impl CtfStream {
    pub(super) fn new(cpu: u32, trace: Arc<Trace>, parts: Vec<Part>) -> Self {
        let blocks = super::parts::blocks(&parts);
        let threads = Threads::new(parts.len());
        Self { cpu, trace, parts, blocks, threads }
    }

    fn of_block(&self, block: usize) -> (usize, &[Part]) {
        let range = self.blocks.get(block).cloned().unwrap_or(0..0);
        (range.start, self.parts.get(range).unwrap_or(&[]))
    }

    /// The previous thread of a part's first switch.
    fn first_switch(&self, part: &Part) -> Option<i32> {
        let mut found = None;
        self.trace.each_record(part, &mut Vec::new(), |shape, record, _| {
            found = shape.switch(record, self.trace.order).map(|(before, _)| before);
            found.is_none()
        });
        found
    }

    /// The next thread of a part's last switch.
    fn last_switch(&self, part: &Part) -> Option<i32> {
        let mut found = None;
        self.trace.each_record(part, &mut Vec::new(), |shape, record, _| {
            found = shape.switch(record, self.trace.order).map(|(_, after)| after).or(found);
            true
        });
        found
    }

    fn part(&self, at: usize, part: &Part, state: &mut State<'_>) -> Result<(), Damage> {
        let trace = &*self.trace;
        let clock = trace.clock(part);
        let begin_ns = clock.nearest_ns(part.cycles);
        let offset = part.packet.offset.saturating_add(part.bits.start / 8);
        if part.before != Missed::Nothing {
            state.list.missed(part.before, begin_ns, offset);
            state.thread = None;
        }
        let of_classes = trace.shapes.get(part.packet.stream).map_or(&[][..], Vec::as_slice);
        let has_switches = of_classes.iter().any(|shape| shape.switch_at.is_some());
        let is_never_known = !of_classes.iter().any(Shape::says_thread);
        let mut thread = state.thread.take();
        let mut last_ns = begin_ns;
        let order = trace.order;
        let read = trace.each(part, |shape, cycles, event_at, events| {
            let beyond = "an event's time does not fit 64 bits of nanoseconds";
            let ns = clock.ns(cycles).ok_or(ctf::Short { at: event_at, what: beyond })?;
            last_ns = ns;
            let offset = part.packet.offset.saturating_add(event_at / 8);
            let mut read = Ok(());
            state.list.push(ns, offset, |out| {
                let begin = out.len();
                read = shape.write(events, order, out);
                let record = out.get_mut(begin..).unwrap_or(&mut []);
                let event_thread = shape.thread(record, order);
                if let Some(event_thread) = event_thread {
                    put(record, PID_AT, &bytes4(order, event_thread));
                } else if has_switches {
                    let switch = shape.switch(record, order);
                    let ran = switch.map(|(before, _)| before).or(thread).unwrap_or_else(|| {
                        let first = |part: &Part| self.first_switch(part);
                        let last = |part: &Part| self.last_switch(part);
                        self.threads.at(&self.parts, at, self.cpu, first, last)
                    });
                    thread = Some(switch.map_or(ran, |(_, after)| after));
                    put(record, PID_AT, &bytes4(order, ran));
                } else if is_never_known {
                    put(record, PID_AT, &bytes4(order, never_known(self.cpu)));
                }
            });
            read
        });
        state.thread = thread;
        if part.behind != Missed::Nothing {
            state.list.missed(part.behind, last_ns, offset);
            state.thread = None;
        }
        let on_cpu = |what| Damage::on_cpu(self.cpu, part.packet.offset, what);
        read.map_err(|short| on_cpu(format!("{short}; the rest of the packet is ignored")))
    }
}

/// State that continues from part to part of a block.
struct State<'l> {
    list: &'l mut RecordList,
    /// The running thread; `None` if it is unknown.
    thread: Option<i32>,
}

impl RecordSource for CtfStream {
    fn block_count(&self) -> usize {
        self.blocks.len()
    }

    fn stored_len(&self, block: usize) -> u64 {
        self.of_block(block).1.iter().map(Part::len).sum()
    }

    fn unpacked_len(&self, block: usize) -> u64 {
        // A record adds a header, an entry in the list, and padding to whole words.
        self.stored_len(block).saturating_mul(4)
    }

    fn read(&self, block: usize, list: &mut RecordList) -> Result<(), Damage> {
        let (first, parts) = self.of_block(block);
        let mut state = State { list, thread: None };
        let mut damage = None;
        for (at, part) in (first..).zip(parts) {
            if let Err(bad) = self.part(at, part, &mut state) {
                // Events before the damage are valid; what follows comes after a gap.
                state.list.missed(Missed::Unknown, state.list.last_stamp(), bad.offset);
                state.thread = None;
                damage = damage.or(Some(bad));
            }
        }
        match damage {
            Some(bad) if list.is_empty() => Err(bad),
            _ => Ok(()),
        }
    }
}

impl Trace {
    pub(super) fn clock(&self, part: &Part) -> ToNs {
        self.clocks.for_stream(&self.layout, part.packet.stream)
    }

    /// The events of a part, with the shapes of their classes.
    fn events<'t>(&'t self, part: &Part) -> Option<(Events<'t>, &'t [Shape])> {
        let bytes = part.bytes(&self.files);
        let events = Events::new(&self.layout, &part.packet, bytes)?;
        let events = events.within(&part.packet, part.bits.clone(), bytes, part.cycles);
        Some((events, self.shapes.get(part.packet.stream)?))
    }

    /// Calls `take` with each event of a part; `take` must consume the event's fields.
    pub(super) fn each<'t>(
        &'t self,
        part: &Part,
        mut take: impl FnMut(&Shape, u64, u64, &mut Events<'t>) -> Result<(), ctf::Short>,
    ) -> Result<(), ctf::Short> {
        let Some((mut events, shapes)) = self.events(part) else { return Ok(()) };
        // Skips event classes without a shape.
        while let Some(event) = events.next_event() {
            let event = event?;
            let at = events.event_at();
            if let Some(shape) = shapes.get(event.index) {
                take(shape, event.cycles, at, &mut events)?;
            }
        }
        Ok(())
    }

    /// Calls `take` with records of events that show which threads run, or their names, until it
    /// returns false.
    pub(super) fn each_record(
        &self,
        part: &Part,
        record: &mut Vec<u8>,
        mut take: impl FnMut(&Shape, &[u8], u64) -> bool,
    ) {
        let Some((mut events, shapes)) = self.events(part) else { return };
        let is_wanted = |class: usize| shapes.get(class).is_some_and(|shape| shape.names_threads);
        // Damage ends the part.
        while let Some(Ok(event)) = events.next_of(is_wanted) {
            let Some(shape) = shapes.get(event.index) else { return };
            record.clear();
            let written = shape.write(&mut events, self.order, record);
            if written.is_err() || !take(shape, record, event.cycles) {
                return;
            }
        }
    }
}

impl Shape {
    /// Appends the record of the last event.
    #[inline]
    pub(super) fn write<'t>(
        &self,
        events: &mut Events<'t>,
        order: ByteOrder,
        out: &mut Vec<u8>,
    ) -> Result<(), ctf::Short> {
        let begin = out.len();
        if let Some(run) = &self.run
            && let Some(bytes) = events.take_run()
        {
            let mut head = [0; HEAD_BYTES as usize];
            put(&mut head, 0, &bytes2(order, self.id));
            out.extend_from_slice(&head);
            out.extend_from_slice(bytes.get(run.clone()).unwrap_or(&[]));
            out.resize(begin + usize::from(self.size), 0);
            return Ok(());
        }
        out.resize(begin + usize::from(self.size), 0);
        put(out, begin, &bytes2(order, self.id));
        let mut plans = self.plans.iter();
        events.take(|_, step, content| {
            let Some(plan) = plans.next() else { return };
            match (plan, content) {
                (Plan::Pieces(pieces), Taken::Fixed(cursor, at)) => {
                    for piece in pieces {
                        piece.write(&cursor, at, begin, order, out);
                    }
                    self.common(step, &cursor, at, begin, out);
                }
                (Plan::Comm { at }, Taken::Bytes(bytes)) => {
                    let max = usize::from(COMM_BYTES) - 1;
                    put(out, begin + usize::from(*at), bytes.get(..max).unwrap_or(bytes));
                }
                (Plan::Behind { at, is_text }, Taken::Bytes(bytes)) => {
                    behind(out, begin, *at, bytes, *is_text, order);
                }
                (Plan::Behind { at, is_text }, Taken::Printed(text)) => {
                    behind(out, begin, *at, text.as_bytes(), *is_text, order);
                }
                _ => {}
            }
        })?;
        // Records have whole words.
        out.resize(begin + (out.len() - begin).next_multiple_of(4), 0);
        Ok(())
    }

    fn common(&self, step: &Step, cursor: &Cursor<'_>, at: u64, begin: usize, out: &mut [u8]) {
        if self.common_at == [None; 2] {
            return;
        }
        let Step::Fixed { fields, .. } = step else { return };
        let order = fields.first().map_or(ByteOrder::Little, |field| field.field_type.order());
        for (to, place) in [2, 3].into_iter().zip(self.common_at) {
            let value = place.and_then(|(from, bits)| {
                cursor.unsigned_at(at.saturating_add(from.into()), bits, order)
            });
            put(out, begin + to, &[value.unwrap_or(0) as u8]);
        }
    }

    /// The CPU according to the event.
    pub(super) fn cpu(&self, record: &[u8], order: ByteOrder) -> Option<u32> {
        order.u32_at(record, self.cpu_at?.into())
    }

    /// The thread according to the event.
    #[inline]
    fn thread(&self, record: &[u8], order: ByteOrder) -> Option<i32> {
        number(record, self.thread_at?, order)
    }

    /// The previous and the next thread of a switch.
    #[inline]
    fn switch(&self, record: &[u8], order: ByteOrder) -> Option<(i32, i32)> {
        let (before, after) = self.switch_at?;
        Some((number(record, before, order)?, number(record, after, order)?))
    }
}

impl Piece {
    #[inline]
    fn write(&self, cursor: &Cursor<'_>, at: u64, begin: usize, order: ByteOrder, out: &mut [u8]) {
        let (at, to) = (at.saturating_add(self.from.into()), begin + usize::from(self.to));
        match &self.how {
            How::Bytes(len) => {
                if let Some(bytes) = cursor.bytes_at(at, u64::from(*len)) {
                    put(out, to, bytes);
                }
            }
            How::Integer(integer) => {
                let raw = cursor.unsigned_at(at, integer.bits, integer.order).unwrap_or(0);
                // The low 64 bits of a signed or unsigned number.
                put(out, to, &bytes8(order, integer.value(raw) as u64));
            }
            How::Floats(float, count) => {
                let places = (0..u64::from(*count)).map(|index| at + index * u64::from(float.bits));
                let raw = places.map_while(|at| cursor.unsigned_at(at, float.bits, float.order));
                let texts: Vec<String> = raw.map(|raw| format!("{:?}", float.value(raw))).collect();
                put(out, to, texts.join(", ").as_bytes());
            }
        }
    }
}

/// Appends bytes, and stores their position and length in the field. Truncates them if they exceed
/// the field's range.
fn behind(out: &mut Vec<u8>, begin: usize, at: u16, bytes: &[u8], is_text: bool, order: ByteOrder) {
    let place = out.len() - begin;
    let room = usize::from(u16::MAX).saturating_sub(place).saturating_sub(8);
    let bytes = bytes.get(..room).unwrap_or(bytes);
    out.extend_from_slice(bytes);
    if is_text {
        out.push(0);
    }
    let len = bytes.len() + usize::from(is_text);
    let (Ok(place), Ok(len)) = (u16::try_from(place), u16::try_from(len)) else { return };
    let named = u32::from(len) << 16 | u32::from(place);
    put(out, begin + usize::from(at), &bytes4(order, named.cast_signed()));
}

#[inline]
fn put(out: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(to) = out.get_mut(at..at.saturating_add(bytes.len())) {
        to.copy_from_slice(bytes);
    }
}

#[inline]
fn number(record: &[u8], at: u16, order: ByteOrder) -> Option<i32> {
    order.u32_at(record, at.into()).map(u32::cast_signed)
}

#[inline]
fn bytes2(order: ByteOrder, value: u16) -> [u8; 2] {
    if order == ByteOrder::Big { value.to_be_bytes() } else { value.to_le_bytes() }
}

#[inline]
fn bytes4(order: ByteOrder, value: i32) -> [u8; 4] {
    if order == ByteOrder::Big { value.to_be_bytes() } else { value.to_le_bytes() }
}

#[inline]
fn bytes8(order: ByteOrder, value: u64) -> [u8; 8] {
    if order == ByteOrder::Big { value.to_be_bytes() } else { value.to_le_bytes() }
}

const _: () = assert!(HEAD_BYTES as usize >= PID_AT + 4);
