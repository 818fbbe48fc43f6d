//! Converts records to events: the wanted fields are resolved once per format.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use ftrace::eventfmt::{EventFormat, NumberAt};
use ftrace::ringbuf::{PageTime, Record, RecordDamage};
use raw_bytes::ByteOrder;
use sources::{Block, Damage, FormatTable, Packet, Recording};

use super::batch::{TraceEventBatch, Walk};
use super::name_fields::{NameAt, names_of, renames};
use super::{EventRequest, MAX_FIELDS, TraceEvent, WantsTraceEvents};
use crate::load::Load;
use crate::rounds::{Decode, Input};
use crate::stamps;

/// Positions of the fields of a [`TraceEvent`]: those that the event has, with their indices.
#[derive(Debug, Default)]
struct Fields(Vec<(usize, Load)>);

impl Fields {
    fn new(format: &EventFormat, wanted: &[&str]) -> Self {
        let load = |(place, names): (usize, &&str)| {
            let number = names.split('|').find_map(|name| number(format, name))?;
            Some((place, Load::new(number)))
        };
        Self(wanted.iter().take(MAX_FIELDS).enumerate().filter_map(load).collect())
    }

    /// Reads the values of an event, and sets a bit for each present field, and for each field that
    /// the record is too short for.
    #[inline]
    fn read<const BIG: bool>(&self, payload: &[u8], event: &mut TraceEvent) {
        for (place, load) in &self.0 {
            if let Some(number) = load.read_signed::<BIG>(payload)
                && let Some(value) = event.values.get_mut(*place)
            {
                *value = number;
                event.has |= 1 << place;
            } else {
                event.cut |= 1 << place;
            }
        }
    }
}

/// The position of a numeric field, or of an array element: `args[1]`.
fn number(format: &EventFormat, name: &str) -> Option<NumberAt> {
    match name.strip_suffix(']').and_then(|name| name.split_once('[')) {
        Some((array, index)) => format.field(array)?.element(index.parse().ok()?),
        None => format.field(name)?.number(),
    }
}

/// An event format prepared for reading.
#[derive(Debug)]
struct Event {
    tag: u16,
    /// Otherwise the event is read only for the thread names in it.
    is_wanted: bool,
    fields: Fields,
    /// Fields beyond the first `MAX_FIELDS`, for events with the following tags.
    more: Vec<Fields>,
    /// Positions of thread ids, and of their names.
    names: Vec<(Load, NameAt)>,
}

impl Event {
    fn new(format: &EventFormat, wanted: &EventRequest) -> Self {
        let mut parts = wanted.fields.chunks(MAX_FIELDS).map(|part| Fields::new(format, part));
        let fields = parts.next().unwrap_or_default();
        let more = parts.collect();
        Self { tag: wanted.tag, is_wanted: true, fields, more, names: names_of(format) }
    }

    /// An unwanted event that renames threads: names would be stale without it.
    fn of_names(format: &EventFormat) -> Option<Self> {
        let names = if renames(format) { names_of(format) } else { Vec::new() };
        let fields = Fields::default();
        let event = Self { tag: 0, is_wanted: false, fields, more: Vec::new(), names };
        (!event.names.is_empty()).then_some(event)
    }

    /// Records the thread names in a record.
    #[inline]
    fn note_names<const BIG: bool>(
        &self,
        stamp_ns: u64,
        payload: &[u8],
        batch: &mut TraceEventBatch,
    ) {
        let order = if BIG { ByteOrder::Big } else { ByteOrder::Little };
        for (pid, comm) in &self.names {
            let comm = comm.comm(payload, order);
            if let (Some(pid), Some(comm)) = (pid.read::<BIG>(payload), comm) {
                batch.names.set(pid as u32, &comm, stamp_ns);
            }
        }
    }
}

/// The parts of an event to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventUse {
    Nothing,
    /// Only thread names.
    NamesAlone,
    /// Only the thread that ran.
    Thread,
    /// The thread and thread names.
    Names,
    /// All of these, and fields.
    Fields,
}

/// The requested events of a recording.
#[derive(Debug)]
pub(crate) struct Reader {
    order: ByteOrder,
    type_at: Load,
    pid_at: Load,
    /// By event id.
    by_id: Vec<Option<Event>>,
    /// Whether each event id with a format was seen, wanted or not.
    seen: Vec<AtomicBool>,
}

impl Reader {
    pub(crate) fn new(
        formats: &FormatTable,
        order: ByteOrder,
        wanted: impl Fn(&EventFormat) -> Option<EventRequest>,
    ) -> Self {
        let (mut by_id, mut seen) = (Vec::new(), Vec::new());
        for (id, format) in formats.iter() {
            seen.resize_with(usize::from(id) + 1, AtomicBool::default);
            let event = match wanted(format) {
                Some(wanted) => Some(Event::new(format, &wanted)),
                None => Event::of_names(format),
            };
            let Some(event) = event else { continue };
            by_id.resize_with(usize::from(id) + 1, || None);
            if let Some(place) = by_id.last_mut() {
                *place = Some(event);
            }
        }
        let (type_at, pid_at) = (Load::new(formats.type_at()), Load::new(formats.pid_at()));
        Self { order, type_at, pid_at, by_id, seen }
    }

    /// The parts to read of an event with this id: fields, names, only its occurrence, or nothing.
    pub(super) fn use_of(&self, id: u16) -> EventUse {
        match self.by_id.get(usize::from(id)).and_then(Option::as_ref) {
            None => EventUse::Nothing,
            Some(event) if !event.is_wanted => EventUse::NamesAlone,
            Some(event) if !event.fields.0.is_empty() => EventUse::Fields,
            Some(event) if !event.names.is_empty() => EventUse::Names,
            Some(_) => EventUse::Thread,
        }
    }

    /// The thread that ran when an event happened.
    #[inline]
    pub(super) fn thread<const BIG: bool>(&self, payload: &[u8]) -> u32 {
        self.pid_at.read::<BIG>(payload).unwrap_or(0) as u32
    }

    /// Ids of the events seen so far that have a format, ascending.
    pub(super) fn seen(&self) -> Vec<u16> {
        let all = (0u16..).zip(&self.seen);
        all.filter(|(_, seen)| seen.load(Relaxed)).map(|(id, _)| id).collect()
    }

    /// Records that an event with this id was seen, wanted or not.
    #[inline]
    pub(super) fn note_seen(&self, id: usize) {
        // Written only once, so that reader threads do not compete for the cache line.
        if let Some(seen) = self.seen.get(id).filter(|seen| !seen.load(Relaxed)) {
            seen.store(true, Relaxed);
        }
    }

    /// Skips thread names: readers of live pages do not need them.
    pub(crate) fn without_names(mut self) -> Self {
        self.by_id.iter_mut().flatten().for_each(|event| event.names.clear());
        self
    }

    /// Processes a record of a CPU.
    #[inline]
    pub(crate) fn record(
        &self,
        (recording, cpu, stamp_ns): (u16, u16, u64),
        payload: &[u8],
        batch: &mut TraceEventBatch,
    ) {
        match self.order {
            ByteOrder::Little => {
                self.record_in::<false>((recording, cpu), || stamp_ns, payload, batch);
            }
            ByteOrder::Big => {
                self.record_in::<true>((recording, cpu), || stamp_ns, payload, batch);
            }
        }
    }

    /// [`Reader::record`] for callers that know the byte order at compile time; computes the time
    /// only if the event is wanted.
    #[inline(always)]
    pub(super) fn record_in<const BIG: bool>(
        &self,
        (recording, cpu): (u16, u16),
        stamp_ns: impl FnOnce() -> u64,
        payload: &[u8],
        batch: &mut TraceEventBatch,
    ) {
        let id = self.type_at.read::<BIG>(payload).unwrap_or(0);
        let Ok(id) = usize::try_from(id) else { return };
        self.note_seen(id);
        let Some(event) = self.by_id.get(id).and_then(Option::as_ref) else { return };
        let Some(thread) = self.pid_at.read::<BIG>(payload) else { return };
        let (stamp_ns, thread, tag) = (stamp_ns(), thread as u32, event.tag);
        event.note_names::<BIG>(stamp_ns, payload, batch);
        if !event.is_wanted {
            return;
        }
        let (values, has, cut) = ([0; MAX_FIELDS], 0, 0);
        // The event is filled in place: copying a value right after partial writes is slow (store
        // forwarding fails).
        batch.events.push(TraceEvent { stamp_ns, thread, recording, cpu, tag, has, cut, values });
        if let Some(added) = batch.events.last_mut() {
            event.fields.read::<BIG>(payload, added);
        }
        if !event.more.is_empty() {
            Self::more::<BIG>(event, payload, batch);
        }
    }

    /// Reads only the thread names in an event with this id.
    pub(super) fn note_names<const BIG: bool>(
        &self,
        id: u16,
        stamp_ns: u64,
        payload: &[u8],
        batch: &mut TraceEventBatch,
    ) {
        self.note_seen(id.into());
        if let Some(event) = self.by_id.get(usize::from(id)).and_then(Option::as_ref) {
            event.note_names::<BIG>(stamp_ns, payload, batch);
        }
    }

    /// Adds an event for the fields that did not fit into the previous one.
    #[cold]
    fn more<const BIG: bool>(event: &Event, payload: &[u8], batch: &mut TraceEventBatch) {
        let Some(&first) = batch.events.last() else { return };
        for (fields, tag) in event.more.iter().zip(event.tag.saturating_add(1)..) {
            let (values, has, cut) = ([0; MAX_FIELDS], 0, 0);
            let mut further = TraceEvent { tag, has, cut, values, ..first };
            fields.read::<BIG>(payload, &mut further);
            batch.events.push(further);
        }
    }
}

/// Reads the requested events of all recordings.
#[derive(Debug)]
pub(crate) struct Decoder<'o> {
    readers: Vec<Reader>,
    owners: &'o [u16],
}

impl<'o> Decoder<'o> {
    /// Prepares the requests of a sink.
    pub(crate) fn new<S: WantsTraceEvents>(
        recordings: &[Recording],
        owners: &'o [u16],
        sink: &S,
    ) -> Self {
        let reader = |(at, recording): (usize, &Recording)| {
            let order = recording.abi().order;
            let reader = Reader::new(recording.formats(), order, |format| sink.wanted(at, format));
            if S::WITH_NAMES { reader } else { reader.without_names() }
        };
        Self { readers: recordings.iter().enumerate().map(reader).collect(), owners }
    }

    /// By recording: ids of the events seen.
    pub(crate) fn seen(&self) -> Vec<Vec<u16>> {
        self.readers.iter().map(Reader::seen).collect()
    }
}

impl Decode for Decoder<'_> {
    type Batch = TraceEventBatch;

    fn decode(
        &self,
        index: usize,
        input: Input<'_>,
        block: &Block<'_>,
        batch: &mut TraceEventBatch,
    ) {
        let Some(&owner) = self.owners.get(index) else { return };
        let Some(reader) = self.readers.get(usize::from(owner)) else { return };
        let cpu = u16::try_from(input.stream.cpu()).unwrap_or(u16::MAX);
        let walk = Walk::new(owner, cpu, batch);
        match reader.order {
            ByteOrder::Little => reader.block::<false>(input, block, walk),
            ByteOrder::Big => reader.block::<true>(input, block, walk),
        }
    }
}

impl Reader {
    fn block<const BIG: bool>(&self, input: Input<'_>, block: &Block<'_>, mut walk: Walk<'_>) {
        let cpu = input.stream.cpu();
        let correction = input.recording.correction(input.stream);
        let ns = |stamp| correction.ns(stamp, cpu);
        for (offset, packet, next) in block.packets_and_next() {
            let packet = match packet {
                Ok(packet) => packet,
                Err(damage) => {
                    walk.damaged(Some(Damage::on_cpu(cpu, offset, damage.to_string())));
                    continue;
                }
            };
            let (last, read) = if packet.is_page() {
                self.packet::<BIG, true>(&packet, input, &mut walk)
            } else {
                self.packet::<BIG, false>(&packet, input, &mut walk)
            };
            let missed = walk.batch.losses.missed(packet.missed);
            match walk.batch.stamps.page(offset, (packet.stamp, last), read, next) {
                PageTime::InOrder => walk.in_order(missed, (ns(packet.stamp), ns(last))),
                PageTime::OutOfOrder(step) => {
                    walk.out_of_order(ns(next.map_or(packet.stamp, |next| next.min(packet.stamp))));
                    let step = step.map(|step| stamps::step(cpu, offset, step));
                    walk.batch.losses.damage.extend(step);
                }
            }
            if let Err(damage) = read {
                walk.damaged(Some(Damage::on_cpu(cpu, offset, damage.to_string())));
            }
        }
        walk.end();
    }

    /// Processes a packet's events; returns its last time stamp.
    fn packet<const BIG: bool, const PAGE: bool>(
        &self,
        packet: &Packet<'_>,
        input: Input<'_>,
        walk: &mut Walk<'_>,
    ) -> (u64, Result<(), RecordDamage>) {
        let cpu = input.stream.cpu();
        let correction = input.recording.correction(input.stream);
        let corrected = (!correction.is_identity()).then_some(correction);
        let (place, batch) = ((walk.recording, walk.cpu), &mut *walk.batch);
        let (mut records, mut last_stamp) = (0, packet.stamp);
        let read = packet.for_each_in::<BIG, PAGE>(|Record { stamp, payload }| {
            records += 1;
            last_stamp = stamp;
            let stamp_ns = || corrected.map_or(stamp, |correction| correction.ns(stamp, cpu));
            self.record_in::<BIG>(place, stamp_ns, payload, batch);
        });
        batch.losses.records += records;
        (last_stamp, read)
    }
}
