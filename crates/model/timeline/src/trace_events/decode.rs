//! Records to moments: what is wanted of an event is worked out once per format.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use eventfmt::{EventFormat, NumberAt};
use raw_bytes::ByteOrder;
use ringbuf::{PageTime, Record};
use sources::{Block, Damage, FormatTable, Recording};

use super::names::{BatchNames, COMM_BYTES};
use super::{Gap, MOST_FIELDS, TraceEvent, Wanted};
use crate::load::Load;
use crate::losses::BatchLosses;
use crate::rounds::{Batch, Decode, Input};
use crate::stamps::{self, BlockStamps};

/// Fields with a thread's name, each with the one that has its id.
const NAME_FIELDS: [(&str, &str); 5] = [
    ("prev_pid", "prev_comm"),
    ("next_pid", "next_comm"),
    ("child_pid", "child_comm"),
    ("pid", "comm"),
    ("pid", "newcomm"),
];

/// Events with a `pid` and a `comm` that are not of one thread: the kernel's `sched_process_wait`
/// has the name of the thread that waits, and the id of the one waited for.
const NAMELESS: [&str; 1] = ["sched_process_wait"];

/// Where the fields of one [`TraceEvent`] stand: those that the event has, each with its place.
#[derive(Debug, Default)]
struct Fields(Vec<(usize, Load)>);

impl Fields {
    fn new(format: &EventFormat, wanted: &[&str]) -> Self {
        let load = |(place, names): (usize, &&str)| {
            let number = names.split('|').find_map(|name| number(format, name))?;
            Some((place, Load::new(number)))
        };
        Self(wanted.iter().take(MOST_FIELDS).enumerate().filter_map(load).collect())
    }

    /// The values, and a bit for each that there is.
    #[inline]
    fn read(&self, payload: &[u8], order: ByteOrder) -> ([u64; MOST_FIELDS], u8) {
        let (mut values, mut has) = ([0; MOST_FIELDS], 0);
        for (place, load) in &self.0 {
            if let Some(number) = load.read_signed(payload, order)
                && let Some(value) = values.get_mut(*place)
            {
                *value = number;
                has |= 1 << place;
            }
        }
        (values, has)
    }
}

/// Where a field's number stands, or that of an array's element: `args[1]`.
fn number(format: &EventFormat, name: &str) -> Option<NumberAt> {
    match name.strip_suffix(']').and_then(|name| name.split_once('[')) {
        Some((array, index)) => format.field(array)?.element(index.parse().ok()?),
        None => format.field(name)?.number(),
    }
}

/// An event made ready for reading.
#[derive(Debug)]
struct Event {
    tag: u16,
    fields: Fields,
    /// What is given with the tags that follow, where more fields are wanted than one has room for.
    more: Vec<Fields>,
    /// Where a thread's id stands, and where 16 bytes of its name begin.
    names: Vec<(Load, usize)>,
}

impl Event {
    fn new(format: &EventFormat, wanted: &Wanted) -> Self {
        let mut parts = wanted.fields.chunks(MOST_FIELDS).map(|part| Fields::new(format, part));
        let fields = parts.next().unwrap_or_default();
        let more = parts.collect();
        let nameless = NAMELESS.contains(&format.name());
        let pairs = NAME_FIELDS.iter().filter(|_| !nameless);
        let names = pairs.filter_map(|(pid, comm)| {
            let comm = format.field(comm).filter(|comm| comm.size as usize == COMM_BYTES)?;
            Some((Load::new(format.field(pid)?.number()?), comm.offset as usize))
        });
        Self { tag: wanted.tag, fields, more, names: names.collect() }
    }
}

/// The wanted events of one recording.
#[derive(Debug)]
pub(crate) struct Reader {
    order: ByteOrder,
    type_at: Load,
    pid_at: Load,
    /// By event id.
    by_id: Vec<Option<Event>>,
    /// By the id of each event that has a format: one was seen, wanted or not.
    seen: Vec<AtomicBool>,
}

impl Reader {
    pub(crate) fn new(
        formats: &FormatTable,
        order: ByteOrder,
        wanted: impl Fn(&EventFormat) -> Option<Wanted>,
    ) -> Self {
        let (mut by_id, mut seen) = (Vec::new(), Vec::new());
        for (id, format) in formats.iter() {
            seen.resize_with(usize::from(id) + 1, AtomicBool::default);
            let Some(wanted) = wanted(format) else { continue };
            by_id.resize_with(usize::from(id) + 1, || None);
            if let Some(place) = by_id.last_mut() {
                *place = Some(Event::new(format, &wanted));
            }
        }
        let (type_at, pid_at) = (Load::new(formats.type_at()), Load::new(formats.pid_at()));
        Self { order, type_at, pid_at, by_id, seen }
    }

    /// Ids of the events seen so far that have a format, ascending.
    pub(super) fn seen(&self) -> Vec<u16> {
        let all = (0u16..).zip(&self.seen);
        all.filter(|(_, seen)| seen.load(Relaxed)).map(|(id, _)| id).collect()
    }

    /// Leaves out names of threads: who reads pages as they come has no use for them.
    pub(crate) fn without_names(mut self) -> Self {
        self.by_id.iter_mut().flatten().for_each(|event| event.names.clear());
        self
    }

    #[inline]
    pub(crate) fn record(
        &self,
        (recording, cpu, stamp_ns): (u16, u16, u64),
        payload: &[u8],
        batch: &mut TraceEventBatch,
    ) {
        let id = self.type_at.read_in(payload, self.order).unwrap_or(0);
        let Ok(id) = usize::try_from(id) else { return };
        // Written once: threads that read pages don't take the line from each other.
        if let Some(seen) = self.seen.get(id).filter(|seen| !seen.load(Relaxed)) {
            seen.store(true, Relaxed);
        }
        let Some(event) = self.by_id.get(id).and_then(Option::as_ref) else { return };
        let thread = self.pid_at.read_in(payload, self.order).unwrap_or(0) as u32;
        for (pid, comm) in &event.names {
            let comm = payload.get(*comm..).and_then(|bytes| bytes.first_chunk::<COMM_BYTES>());
            if let (Some(pid), Some(comm)) = (pid.read_in(payload, self.order), comm) {
                batch.names.set(pid as u32, comm);
            }
        }
        let (values, has) = event.fields.read(payload, self.order);
        let tag = event.tag;
        batch.events.push(TraceEvent { stamp_ns, thread, recording, cpu, tag, has, values });
        if !event.more.is_empty() {
            self.more(event, payload, batch);
        }
    }

    /// Adds the fields that the event added last has no room for.
    #[cold]
    fn more(&self, event: &Event, payload: &[u8], batch: &mut TraceEventBatch) {
        let Some(&first) = batch.events.last() else { return };
        for (fields, tag) in event.more.iter().zip(event.tag.saturating_add(1)..) {
            let (values, has) = fields.read(payload, self.order);
            batch.events.push(TraceEvent { tag, has, values, ..first });
        }
    }
}

/// What a block becomes.
#[derive(Debug, Default)]
pub(crate) struct TraceEventBatch {
    /// In time order, unless the page is damaged.
    pub(crate) events: Vec<TraceEvent>,
    /// In the order of the moments that come next, with the index of that one.
    pub(super) gaps: Vec<(usize, Gap)>,
    pub(super) names: BatchNames,
    pub(super) first_ns: Option<u64>,
    pub(super) last_ns: Option<u64>,
    /// Something after the last readable page could not be read.
    pub(super) tail_gap: bool,
    pub(super) stamps: BlockStamps,
    pub(super) losses: BatchLosses,
}

impl Batch for TraceEventBatch {
    fn clear(&mut self) {
        let (mut events, mut names) =
            (std::mem::take(&mut self.events), std::mem::take(&mut self.names));
        events.clear();
        names.clear();
        *self = Self { events, names, ..Self::default() };
    }

    fn last_stamp_ns(&self) -> Option<u64> {
        self.last_ns
    }

    fn set_unreadable(&mut self, damage: Damage) {
        self.losses.damage.push(damage);
        self.tail_gap = true;
    }
}

/// Reads the wanted events of all recordings.
#[derive(Debug)]
pub(super) struct Decoder<'o> {
    readers: Vec<Reader>,
    owners: &'o [u16],
}

impl<'o> Decoder<'o> {
    pub(super) fn new(
        recordings: &[Recording],
        owners: &'o [u16],
        wanted: &dyn Fn(usize, &EventFormat) -> Option<Wanted>,
    ) -> Self {
        let reader = |(at, recording): (usize, &Recording)| {
            let order = recording.abi().order;
            Reader::new(recording.formats(), order, |format| wanted(at, format))
        };
        Self { readers: recordings.iter().enumerate().map(reader).collect(), owners }
    }

    /// By recording: ids of the events seen.
    pub(super) fn seen(&self) -> Vec<Vec<u16>> {
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
        let cpu = input.stream.cpu();
        let correction = input.recording.correction(input.stream);
        let short_cpu = u16::try_from(cpu).unwrap_or(u16::MAX);
        let ns = |stamp| correction.ns(stamp, cpu);
        let mut walk = Walk { recording: owner, cpu: short_cpu, gap: false, batch };
        for (offset, packet, next) in block.packets_and_next() {
            let packet = match packet {
                Ok(packet) => packet,
                Err(damage) => {
                    walk.damaged(Damage::on_cpu(cpu, offset, damage.to_string()));
                    continue;
                }
            };
            let (from, mut last) = (walk.batch.events.len(), packet.stamp);
            let read = packet.for_each(|Record { stamp, payload }| {
                walk.batch.losses.records += 1;
                last = stamp;
                reader.record((owner, short_cpu, ns(stamp)), payload, walk.batch);
            });
            let missed = walk.batch.losses.missed(packet.missed);
            match walk.batch.stamps.page(offset, (packet.stamp, last), read, next) {
                PageTime::InOrder => walk.in_order(from, missed, (ns(packet.stamp), ns(last))),
                PageTime::OutOfOrder(step) => {
                    walk.out_of_order(
                        from,
                        ns(next.map_or(packet.stamp, |next| next.min(packet.stamp))),
                    );
                    let step = step.map(|step| stamps::step(cpu, offset, step));
                    walk.batch.losses.damage.extend(step);
                }
            }
            if let Err(damage) = read {
                walk.damaged(Damage::on_cpu(cpu, offset, damage.to_string()));
            }
        }
        walk.batch.tail_gap = walk.gap;
    }
}

/// Keeps account of losses from page to page of one block.
struct Walk<'b> {
    recording: u16,
    cpu: u16,
    /// Something was lost since the last page in order.
    gap: bool,
    batch: &'b mut TraceEventBatch,
}

impl Walk<'_> {
    fn damaged(&mut self, damage: Damage) {
        self.batch.losses.damage.push(damage);
        self.gap = true;
    }

    fn gap(&mut self, at: usize, from_ns: u64, to_ns: u64) {
        let gap = Gap { recording: self.recording, cpu: self.cpu, from_ns, to_ns };
        self.batch.gaps.push((at, gap));
    }

    /// A page was read whose times are in order; its moments are those from `from` on.
    fn in_order(&mut self, from: usize, missed: bool, (begin_ns, end_ns): (u64, u64)) {
        if std::mem::take(&mut self.gap) || missed {
            // At a block's beginning, the merger knows how far the block before it went.
            self.gap(from, self.batch.last_ns.unwrap_or(0), begin_ns);
        }
        self.batch.first_ns.get_or_insert(begin_ns);
        self.batch.last_ns = self.batch.last_ns.max(Some(begin_ns.max(end_ns)));
    }

    /// A page was read whose times mean nothing: as in `PageWalk::out_of_order` of exits.
    #[cold]
    fn out_of_order(&mut self, from: usize, place_ns: u64) {
        let place_ns = self.batch.last_ns.unwrap_or(place_ns);
        for event in self.batch.events.iter_mut().skip(from) {
            event.stamp_ns = place_ns;
        }
        self.gap(from, self.batch.last_ns.unwrap_or(0), place_ns.saturating_add(1));
        self.batch.first_ns.get_or_insert(place_ns);
        self.batch.last_ns = self.batch.last_ns.max(Some(place_ns));
        self.gap = true;
    }
}

impl TraceEventBatch {
    /// The stream had reached a later moment than that at which this block begins: what is before it
    /// has no time of its own.
    #[cold]
    pub(super) fn begin_at(&mut self, recording: u16, cpu: u16, reached_ns: u64) {
        let late = self.events.iter().take_while(|one| one.stamp_ns < reached_ns).count();
        for event in &mut self.events {
            event.stamp_ns = event.stamp_ns.max(reached_ns);
        }
        for (_, gap) in &mut self.gaps {
            gap.from_ns = gap.from_ns.max(reached_ns);
            gap.to_ns = gap.to_ns.max(reached_ns);
        }
        let next_ns = self.events.get(late).map(|next| next.stamp_ns);
        let gap = |to_ns| Gap { recording, cpu, from_ns: reached_ns, to_ns };
        if let Some(next_ns) = next_ns {
            let place = self.gaps.partition_point(|(at, _)| *at < late);
            self.gaps.insert(place, (late, gap(next_ns)));
        }
        self.tail_gap |= self.last_ns.is_none_or(|last_ns| last_ns < reached_ns);
        self.gaps.insert(0, (0, gap(reached_ns.saturating_add(1))));
        self.first_ns = self.first_ns.max(Some(reached_ns));
    }
}
