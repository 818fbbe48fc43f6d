//! Converts the records of a recording to [`ThreadEvent`]s: the hot loop of every report about
//! exits.
//!
//! The rules of [`crate::arch`] are compiled against the recording's own formats; reading an event
//! is then a look-up by its id and a few loads at known offsets.

mod action;
mod aside;

use ftrace::ringbuf::{PageTime, Record, RecordDamage};
use raw_bytes::ByteOrder;
use sources::{Block, Packet, Recording};

use self::action::{Action, EventTime};
use crate::load::Load;
use crate::rounds::{Decode, Input};
use crate::thread_batch::{PageWalk, ThreadBatch};
use crate::thread_event::{Kind, ThreadEvent};

pub(crate) use self::aside::Aside;

/// No action: the event does not concern vCPUs.
const IGNORE: u8 = u8::MAX;

/// The compiled rules of a recording.
#[derive(Debug)]
pub(crate) struct Extractor {
    order: ByteOrder,
    type_at: Load,
    type_is_first: bool,
    /// By event id: index in `actions`, or [`IGNORE`]. A byte per id, so that irrelevant events
    /// touch no other memory. It covers all 2^16 ids, which saves a bounds check.
    by_id: Box<[u8; 1 << 16]>,
    actions: Vec<Action>,
}

/// Maximum actions: the rules have about thirty events; host work has many names but one layout per kernel.
const MAX_ACTIONS: usize = IGNORE as usize;

impl Extractor {
    /// Compiles the rules against the formats of `recording`; details are read if `details`.
    pub(crate) fn new(recording: &Recording, details: bool) -> Self {
        let formats = recording.formats();
        let (mut by_id, mut actions) = (Box::new([IGNORE; 1 << 16]), Vec::new());
        let mut host_work = None;
        let ran = Load::new(formats.pid_at());
        for (id, format) in formats.iter() {
            let Some(action) = action::compile(format, ran, details) else { continue };
            if action.kind() == Kind::VcpuWakeup && !recording.is_nanoseconds() {
                // Its duration is in nanoseconds, which does not fit time stamps in other units.
                continue;
            }
            let known = host_work.filter(|_| action.kind() == Kind::HostWork);
            let index = known.unwrap_or(actions.len());
            if index == MAX_ACTIONS {
                break;
            }
            by_id[usize::from(id)] = index as u8;
            if action.kind() == Kind::HostWork {
                host_work = Some(index);
            }
            if known.is_none() {
                actions.push(action);
            }
        }
        let type_at = formats.type_at();
        let type_is_first = type_at.offset == 0 && type_at.size == 2;
        let (order, type_at) = (recording.abi().order, Load::new(type_at));
        Self { order, type_at, type_is_first, by_id, actions }
    }

    /// An extractor that reads only what identifies vCPU threads (see [`OnlyVcpus`]).
    pub(crate) fn of_vcpus(recording: &Recording) -> Self {
        let mut extractor = Self::new(recording, false);
        let shows =
            |action: &Action| matches!(action.kind(), Kind::Entry | Kind::Exit | Kind::ThreadGone);
        for index in extractor.by_id.iter_mut().filter(|index| **index != IGNORE) {
            if !extractor.actions.get(usize::from(*index)).is_some_and(shows) {
                *index = IGNORE;
            }
        }
        extractor
    }

    #[inline(always)]
    fn id<const BIG: bool>(&self, payload: &[u8]) -> Option<u16> {
        // In every kernel so far `common_type` is the first field, so its offset is compiled in.
        match payload.first_chunk() {
            Some(bytes) if self.type_is_first && BIG => Some(u16::from_be_bytes(*bytes)),
            Some(bytes) if self.type_is_first => Some(u16::from_le_bytes(*bytes)),
            _ => self.id_elsewhere::<BIG>(payload),
        }
    }

    #[inline(always)]
    fn action(&self, id: u16) -> Option<&Action> {
        self.actions.get(usize::from(self.by_id[usize::from(id)]))
    }

    #[cold]
    fn id_elsewhere<const BIG: bool>(&self, payload: &[u8]) -> Option<u16> {
        Some(self.type_at.read::<BIG>(payload)? as u16)
    }

    /// Processes a packet's events; returns its last time stamp.
    fn packet<const BIG: bool, const PAGE: bool>(
        &self,
        packet: &Packet<'_>,
        (input, stream): (Input<'_>, u16),
        batch: &mut ThreadBatch,
        aside: &mut impl Aside,
    ) -> (u64, Result<(), RecordDamage>) {
        let cpu = input.stream.cpu();
        let correction = input.recording.correction(input.stream);
        let corrected = (!correction.is_identity()).then_some(correction);
        let (mut records, mut last_stamp) = (0, packet.stamp);
        let result = packet.for_each_in::<BIG, PAGE>(|Record { stamp, payload }| {
            records += 1;
            last_stamp = stamp;
            let Some(id) = self.id::<BIG>(payload) else { return };
            let stamp_ns = || corrected.map_or(stamp, |correction| correction.ns(stamp, cpu));
            aside.record::<BIG>(id, stamp_ns, payload);
            let Some(action) = self.action(id) else { return };
            let stamp_ns = stamp_ns();
            action.take::<BIG>(EventTime { stamp_ns, stream }, payload, batch);
        });
        batch.losses.records += records;
        (last_stamp, result)
    }

    fn block<const BIG: bool>(
        &self,
        input: Input<'_>,
        block: &Block<'_>,
        walk: &mut PageWalk<'_>,
        stream: u16,
        aside: &mut impl Aside,
    ) {
        let correction = input.recording.correction(input.stream);
        let ns = |stamp| correction.ns(stamp, input.stream.cpu());
        for (offset, packet, next) in block.packets_and_next() {
            let packet = match packet {
                Ok(packet) => packet,
                Err(damage) => {
                    walk.damaged(offset, damage.to_string());
                    aside.damaged();
                    continue;
                }
            };
            let from = walk.batch().events.len();
            let (last, read) = if packet.is_page() {
                self.packet::<BIG, true>(&packet, (input, stream), walk.batch(), aside)
            } else {
                self.packet::<BIG, false>(&packet, (input, stream), walk.batch(), aside)
            };
            let time = walk.batch().stamps.page(offset, (packet.stamp, last), read, next);
            match time {
                PageTime::InOrder => {
                    let span_ns = (ns(packet.stamp), ns(last));
                    walk.in_order(from, packet.missed, span_ns);
                    aside.in_order(packet.missed, span_ns);
                }
                PageTime::OutOfOrder(step) => {
                    let place_ns = ns(next.map_or(packet.stamp, |next| next.min(packet.stamp)));
                    walk.out_of_order(from, packet.missed, place_ns);
                    aside.out_of_order(place_ns);
                    walk.stepped(offset, step);
                }
            }
            if let Err(damage) = read {
                walk.damaged(offset, damage.to_string());
                aside.damaged();
            }
        }
    }

    /// Processes a block's events, and passes its records to `aside`.
    pub(crate) fn decode_with(
        &self,
        index: usize,
        input: Input<'_>,
        block: &Block<'_>,
        batch: &mut ThreadBatch,
        aside: &mut impl Aside,
    ) {
        let stream = u16::try_from(index).unwrap_or(u16::MAX);
        let mut walk = PageWalk::new(stream, input.stream.cpu(), batch);
        match self.order {
            ByteOrder::Little => self.block::<false>(input, block, &mut walk, stream, aside),
            ByteOrder::Big => self.block::<true>(input, block, &mut walk, stream, aside),
        }
        walk.end();
    }
}

/// Reads what identifies vCPU threads, their ids and their first times: only those entries and
/// exits of a thread that carry new information.
#[derive(Debug)]
pub(crate) struct OnlyVcpus(pub(crate) Extractor);

impl Decode for OnlyVcpus {
    type Batch = ThreadBatch;

    fn decode(&self, index: usize, input: Input<'_>, block: &Block<'_>, batch: &mut ThreadBatch) {
        self.0.decode(index, input, block, batch);
        batch.events.dedup_by(|event, last| event.thread == last.thread && repeats(event, last));
    }
}

/// Whether an event repeats what the thread's previous event said about its vCPU.
fn repeats(event: &ThreadEvent, last: &ThreadEvent) -> bool {
    match (last.kind, event.kind) {
        (Kind::Exit | Kind::Entry, Kind::Exit) => true,
        (Kind::Entry, Kind::Entry) => last.value == event.value,
        _ => false,
    }
}

impl Decode for Extractor {
    type Batch = ThreadBatch;

    fn decode(&self, index: usize, input: Input<'_>, block: &Block<'_>, batch: &mut ThreadBatch) {
        self.decode_with(index, input, block, batch, &mut ());
    }
}
