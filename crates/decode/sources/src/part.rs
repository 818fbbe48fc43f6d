//! The selected part of a recording: a time range, or everything except the activity of some vCPUs.
//! Events outside are skipped, as if they had not been recorded.
//!
//! Blocks completely outside are skipped if their first time stamps can be read without unpacking.
//! Packets at the ends of the range are read in part. A loss before a packet that began earlier is
//! before the range.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use ftrace::eventfmt::{EventFormat, NumberAt};
use ftrace::ringbuf::{Missed, PageDamage, Record};
use raw_bytes::ByteOrder;
use tracedat::Correction;

use crate::clock::Clock;
use crate::records::Packet;
use crate::samples::Samples;
use crate::stream::{BlockReader, Stream};
use crate::{Doubt, Recording};

/// A time range with an exclusive end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// First nanosecond (or tick, depending on the clock).
    pub from_ns: u64,
    /// First nanosecond after the range.
    pub to_ns: u64,
}

impl TimeRange {
    /// All times except the last possible nanosecond.
    pub const ALL: Self = Self { from_ns: 0, to_ns: u64::MAX };

    /// Whether the range contains a time.
    #[must_use]
    pub fn contains(self, ns: u64) -> bool {
        self.from_ns <= ns && ns < self.to_ns
    }
}

/// The selected part of a recording.
#[derive(Debug)]
pub(crate) struct RecordingPart {
    times: TimeRange,
    /// The clocks when the range was set.
    clock: Clock,
    left_out: Option<ExcludedVcpus>,
}

/// Events of some threads are excluded.
#[derive(Debug)]
struct ExcludedVcpus {
    threads: BTreeSet<u32>,
    /// By thread of each included vCPU: the VM's name and the vCPU number, as found when all vCPUs
    /// were read.
    kept_vcpus: BTreeMap<u32, (String, u32)>,
    /// Ids of the excluded events.
    events: BTreeSet<u16>,
    order: ByteOrder,
    type_at: NumberAt,
    pid_at: NumberAt,
}

impl ExcludedVcpus {
    fn has(&self, payload: &[u8]) -> bool {
        let number = |at: NumberAt| at.read(payload, self.order);
        let is_one = |id: u64| u16::try_from(id).is_ok_and(|id| self.events.contains(&id));
        number(self.type_at).is_some_and(is_one)
            && number(self.pid_at).is_some_and(|pid| self.threads.contains(&(pid as u32)))
    }
}

impl RecordingPart {
    pub(crate) fn of_stream(&self, stream: &Stream) -> StreamPart<'_> {
        let correction = self.clock.correction(stream.buffer());
        let (times, left_out) = (self.times, self.left_out.as_ref());
        StreamPart { times, correction, cpu: stream.cpu(), left_out }
    }
}

/// The selected part of a stream, and the conversion of its time stamps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamPart<'a> {
    times: TimeRange,
    correction: &'a Correction,
    cpu: u32,
    left_out: Option<&'a ExcludedVcpus>,
}

impl<'a> StreamPart<'a> {
    fn ns(&self, stamp: u64) -> u64 {
        self.correction.ns(stamp, self.cpu)
    }

    pub(crate) fn holds(&self, record: &Record<'_>) -> bool {
        self.times.contains(self.ns(record.stamp))
            && self.left_out.is_none_or(|left_out| !left_out.has(record.payload))
    }

    /// Whether something in the range can lie between these times in any order, including what
    /// comes before the first or after the last if they are unknown.
    fn may_hold(&self, last_ns: Option<u64>, own_ns: Option<u64>, next_ns: Option<u64>) -> bool {
        let known = || [last_ns, own_ns, next_ns].into_iter().flatten();
        let earliest_ns = last_ns.and(known().min()).unwrap_or(0);
        let latest_ns = next_ns.and(known().max()).unwrap_or(u64::MAX);
        earliest_ns < self.times.to_ns && latest_ns >= self.times.from_ns
    }

    /// A packet without excluded events, independent of its times.
    fn at_all_times(&self, packet: Packet<'a>) -> Packet<'a> {
        match self.left_out {
            None => packet,
            Some(_) => packet.within(Self { times: TimeRange::ALL, ..*self }),
        }
    }

    /// The part of a packet in the range, if any; the neighbouring packets begin at `last_ns` and
    /// `next_ns`.
    fn part_of(
        &self,
        packet: Packet<'a>,
        last_ns: Option<u64>,
        next_ns: Option<u64>,
    ) -> Option<Packet<'a>> {
        let TimeRange { from_ns, to_ns } = self.times;
        let begin_ns = self.ns(packet.stamp);
        let runs_back = |earlier: Option<u64>, later: Option<u64>| {
            earlier.zip(later).is_some_and(|(earlier, later)| later < earlier)
        };
        if runs_back(last_ns, Some(begin_ns)) || runs_back(Some(begin_ns), next_ns) {
            // The reader decides which of the time stamps is wrong.
            return self
                .may_hold(last_ns, Some(begin_ns), next_ns)
                .then(|| self.at_all_times(packet));
        }
        // The kernel writes pages in order; records of a text can run back within a packet.
        if packet.is_page() {
            if begin_ns >= to_ns || next_ns.is_some_and(|ns| ns < from_ns) {
                return None;
            }
            if begin_ns >= from_ns && next_ns.is_some_and(|ns| ns < to_ns) {
                return Some(self.at_all_times(packet));
            }
        }
        let mut part = packet.within(*self);
        if self.times.contains(begin_ns) {
            return Some(part);
        }
        let mut first = None;
        // The reader of the part reports damage.
        let _ = part.for_each(|record| {
            first.get_or_insert(record.stamp);
        });
        (part.stamp, part.missed) = (first?, Missed::Nothing);
        Some(part)
    }
}

/// A packet with its offset in the file, or why it cannot be read.
type Found<'a> = (u64, Result<Packet<'a>, PageDamage>);

/// The packets of a block in the selected part; all packets without a selection.
#[derive(Debug)]
pub(crate) struct InPart<'a, I: Iterator<Item = Found<'a>>> {
    range: Option<StreamPart<'a>>,
    packets: I,
    /// The next packet, after a look ahead.
    next: Option<Found<'a>>,
    /// Start time of the last readable packet.
    last_ns: Option<u64>,
}

impl<'a, I: Iterator<Item = Found<'a>>> InPart<'a, I> {
    pub(crate) fn new(range: Option<StreamPart<'a>>, packets: I) -> Self {
        Self { range, packets, next: None, last_ns: None }
    }

    fn next_in(&mut self, range: StreamPart<'a>) -> Option<Found<'a>> {
        loop {
            let (offset, packet) = self.next.take().or_else(|| self.packets.next())?;
            self.next = self.packets.next();
            let next = self.next.as_ref().and_then(|(_, next)| next.as_ref().ok());
            let next_ns = next.map(|next| range.ns(next.stamp));
            let part = match packet {
                Ok(packet) => {
                    let last_ns = self.last_ns.replace(range.ns(packet.stamp));
                    range.part_of(packet, last_ns, next_ns).map(Ok)
                }
                Err(damage) => range.may_hold(self.last_ns, None, next_ns).then_some(Err(damage)),
            };
            if let Some(part) = part {
                return Some((offset, part));
            }
        }
    }
}

impl<'a, I: Iterator<Item = Found<'a>>> Iterator for InPart<'a, I> {
    type Item = Found<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self.range {
            None => self.packets.next(),
            Some(range) => self.next_in(range),
        }
    }
}

impl Recording {
    /// The selected range on the clock at the time of selection; `None`: everything.
    #[must_use]
    pub fn range(&self) -> Option<TimeRange> {
        self.part.as_ref().map(|part| part.times)
    }

    /// Selects the records in `times` on its current clock: later clock corrections move the range
    /// as well. The kernel's loss counts are for the whole recording.
    pub fn set_range(&mut self, times: TimeRange) {
        let left_out = self.part.take().and_then(|part| part.left_out);
        let part = RecordingPart { times, clock: self.clock.clone(), left_out };
        let mut streams = std::mem::take(&mut self.streams);
        for stream in &mut streams {
            let firsts = self.first_stamps(stream);
            let ns = |stamp: &u64| part.of_stream(stream).ns(*stamp);
            if let Some(firsts) = firsts.map(|all| all.iter().map(ns).collect::<Vec<_>>()) {
                stream.keep_blocks(blocks_within(&firsts, times));
            }
        }
        self.streams = streams;
        self.part = Some(part);
        let lost = self.ending.lost();
        self.ending.counts.clear();
        if lost > 0 {
            self.ending.doubt.get_or_insert(Doubt::InAll(lost));
        }
    }

    /// Excludes the activity of these threads as vCPUs: KVM events and function calls. `kept_vcpus`
    /// has the VM's name and the number of each other vCPU, by thread.
    pub fn exclude_vcpus(
        &mut self,
        threads: BTreeSet<u32>,
        kept_vcpus: BTreeMap<u32, (String, u32)>,
    ) {
        let of_vcpus = self.formats.iter().filter(|(_, format)| is_of_vcpu(format));
        let left_out = ExcludedVcpus {
            threads,
            kept_vcpus,
            events: of_vcpus.map(|(id, _)| id).collect(),
            order: self.abi.order,
            type_at: self.formats.type_at(),
            pid_at: self.formats.pid_at(),
        };
        let all =
            || RecordingPart { times: TimeRange::ALL, clock: self.clock.clone(), left_out: None };
        let part = self.part.take().unwrap_or_else(all);
        self.part = Some(RecordingPart { left_out: Some(left_out), ..part });
    }

    /// Whether the whole recording is selected.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.part.is_none()
    }

    /// Whether this thread's activity as a vCPU is excluded.
    #[must_use]
    pub fn leaves_out_vcpu(&self, thread: u32) -> bool {
        let left_out = self.part.as_ref().and_then(|part| part.left_out.as_ref());
        left_out.is_some_and(|left_out| left_out.threads.contains(&thread))
    }

    /// VM names and numbers of the vCPUs that remained when others were excluded, by thread.
    pub(crate) fn kept_vcpus(&self) -> impl Iterator<Item = (u32, (&str, u32))> {
        let left_out = self.part.as_ref().and_then(|part| part.left_out.as_ref());
        let vcpus = left_out.into_iter().flat_map(|left_out| &left_out.kept_vcpus);
        vcpus.map(|(thread, (vm, vcpu))| (*thread, (&**vm, *vcpu)))
    }

    /// The times of the first and the last selected record. `None` if no record is selected.
    #[must_use]
    pub fn extent_ns(&self) -> Option<(u64, u64)> {
        let (first_ns, last_ns) = self.first_and_last_ns()?;
        let range = self.range().unwrap_or(TimeRange::ALL);
        let (from_ns, to_ns) = (first_ns.max(range.from_ns), last_ns.min(range.to_ns));
        (from_ns <= to_ns).then_some((from_ns, to_ns))
    }

    /// The times of its first and last record, or of its samples if it has no events; `None` if it
    /// has neither. Reads a few pages of each stream.
    #[must_use]
    pub fn first_and_last_ns(&self) -> Option<(u64, u64)> {
        let mut reader = BlockReader::default();
        let mut found: Option<(u64, u64)> = None;
        for stream in &self.streams {
            let ns = |stamp| self.correction(stream).ns(stamp, stream.cpu());
            let count = stream.block_count();
            let mut blocks = 0..count;
            let first = blocks.find_map(|block| self.ends_of(stream, block, &mut reader));
            let last = (0..count).rev().find_map(|block| self.ends_of(stream, block, &mut reader));
            if let Some(((first, _), (_, last))) = first.zip(last) {
                let (first, last) = (ns(first), ns(last));
                let so_far = found.unwrap_or((first, last));
                found = Some((so_far.0.min(first), so_far.1.max(last)));
            }
        }
        found.or_else(|| Samples::for_recording(self).ok()??.first_and_last_ns())
    }

    /// The time stamps of the first and the last record of a block.
    fn ends_of(
        &self,
        stream: &Stream,
        block: usize,
        reader: &mut BlockReader,
    ) -> Option<(u64, u64)> {
        let block = self.uncounted_block(stream, block, reader).ok()?;
        let packets = || block.packets().filter_map(|(_, packet)| packet.ok());
        let first = packets().find_map(|packet| packet_ends(&packet))?.0;
        let last = packets().filter_map(|packet| packet_ends(&packet)).last()?.1;
        Some((first, last))
    }

    /// The time stamps at which the blocks of a stream begin; `None` if that requires unpacking, or
    /// if a block cannot be read.
    fn first_stamps(&self, stream: &Stream) -> Option<Vec<u64>> {
        let blocks = 0..stream.block_count();
        blocks.map(|block| stream.first_stamp(&self.files, block)).collect()
    }
}

/// Of blocks with these start times, those that can overlap a range. A block with a wrong time is
/// out of order: nothing after it is skipped, and one more block after the range is read.
fn blocks_within(firsts_ns: &[u64], times: TimeRange) -> Range<usize> {
    let is_before =
        |pair: &&[u64]| matches!(pair, [current, next] if current <= next && *next < times.from_ns);
    let is_after = |pair: &&[u64]| matches!(pair, [current, next] if current <= next && *current >= times.to_ns);
    let begin = firsts_ns.windows(2).take_while(is_before).count();
    let after = firsts_ns.windows(2).rev().take_while(is_after).count();
    begin..firsts_ns.len().saturating_sub(after).max(begin)
}

/// Whether an event describes the activity of a vCPU.
fn is_of_vcpu(format: &EventFormat) -> bool {
    let is_call = || format.name().starts_with("funcgraph_") || format.name() == "function";
    format.system().starts_with("kvm") || format.system() == "ftrace" && is_call()
}

fn packet_ends(packet: &Packet<'_>) -> Option<(u64, u64)> {
    let mut ends: Option<(u64, u64)> = None;
    let _ = packet.for_each(|record| {
        let first = ends.map_or(record.stamp, |(first, _)| first);
        ends = Some((first, record.stamp));
    });
    ends
}
