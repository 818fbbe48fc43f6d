//! Contents of a recording: events by name and CPU, their time range, and losses.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use ftrace::eventfmt::{EventFormat, NumberAt};
use ftrace::ringbuf::{Missed, PageTime, RecordDamage};
use raw_bytes::ByteOrder;
use sources::{Block, Damage, Damages, Ending, Packet, Recording, Stream};
use timeline::reading::{BlockTask, Reading};
use timeline::rounds::{self, Batch, Consume, Decode, Input};
use timeline::stamps::{self, BlockStamps, StreamStamps};
use timeline::{Losses, Vm, group_vms};

/// Events of one CPU in one buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuContents {
    pub cpu: u32,
    /// Name of the buffer; empty for the top-level buffer.
    pub buffer: String,
    pub events: u64,
    pub pages: u64,
    /// Time of the first event.
    pub first_ns: Option<u64>,
    /// Time of the last event.
    pub last_ns: Option<u64>,
    /// Events that the kernel dropped and counted.
    pub events_lost: u64,
    /// Number of losses without a count.
    pub uncounted_losses: u64,
    /// Losses without a count that the CPU's totals do not include either.
    pub unexplained_losses: u64,
}

/// Contents of a recording.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// Events by `system:name`; events without a format are `unknown:ID`.
    pub events: BTreeMap<String, u64>,
    /// One per CPU and buffer that has pages.
    pub cpus: Vec<CpuContents>,
    /// Pages, records and chunks that could not be read.
    pub damage: Damages,
    /// Whether the counted losses are complete.
    pub losses_known: bool,
    /// Events that the kernel dropped and counted without naming the CPU.
    pub lost_anywhere: u64,
    /// CPUs where the kernel counted more stored events than the recording has: CPU, kernel's count, found.
    pub unmet: Vec<(u32, u64, u64)>,
    /// Whether a CPU has more events than the kernel counted: the counts were reset during the recording.
    pub has_more_than_counted: bool,
}

impl Contents {
    /// Number of events on all CPUs.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.cpus.iter().map(|cpu| cpu.events).sum()
    }

    /// Time of the first event on any CPU.
    #[must_use]
    pub fn first_ns(&self) -> Option<u64> {
        self.cpus.iter().filter_map(|cpu| cpu.first_ns).min()
    }

    /// Time of the last event on any CPU.
    #[must_use]
    pub fn last_ns(&self) -> Option<u64> {
        self.cpus.iter().filter_map(|cpu| cpu.last_ns).max()
    }

    /// Events that the kernel dropped and counted.
    #[must_use]
    pub fn events_lost(&self) -> u64 {
        // A damaged page may claim any number.
        let counted = self.cpus.iter().map(|cpu| cpu.events_lost).fold(0, u64::saturating_add);
        counted.max(self.lost_anywhere)
    }

    /// Number of losses without a count.
    #[must_use]
    pub fn uncounted_losses(&self) -> u64 {
        self.cpus.iter().map(|cpu| cpu.uncounted_losses).sum()
    }

    /// Number of losses of unknown size.
    #[must_use]
    pub fn unexplained_losses(&self) -> u64 {
        self.cpus.iter().map(|cpu| cpu.unexplained_losses).sum()
    }

    /// Events that the kernel's counts include and the recording lacks.
    #[must_use]
    pub fn events_missing(&self) -> u64 {
        let missing =
            |(_, kernel_count, found): &(u32, u64, u64)| kernel_count.saturating_sub(*found);
        self.unmet.iter().map(missing).fold(0, u64::saturating_add)
    }

    /// Pages, records and chunks that could not be read.
    #[must_use]
    pub fn pages_damaged(&self) -> u64 {
        self.damage.count()
    }

    /// Compares the pages with the kernel's counts.
    fn compare(&mut self, ending: &Ending, is_whole: bool) {
        self.lost_anywhere = ending.lost_anywhere;
        for cpu in &mut self.cpus {
            cpu.unexplained_losses = cpu.uncounted_losses;
            let Some(count) = ending.of_cpu(cpu.cpu, &cpu.buffer) else { continue };
            // A page without room for a count only has a flag that events were dropped: the CPU's total includes
            // them.
            if count.lost > cpu.events_lost {
                (cpu.events_lost, cpu.unexplained_losses) = (count.lost, 0);
            }
        }
        for count in &ending.counts {
            let is_same_cpu =
                |cpu: &&CpuContents| cpu.cpu == count.cpu && cpu.buffer == count.buffer;
            let found = self.cpus.iter().find(is_same_cpu).map_or(0, |cpu| cpu.events);
            let kernel_count =
                count.events_kept.filter(|kernel_count| is_whole && *kernel_count > found);
            self.unmet.extend(kernel_count.map(|kernel_count| (count.cpu, kernel_count, found)));
            self.has_more_than_counted |=
                count.events_kept.is_some_and(|kernel_count| kernel_count < found);
        }
        let all_kept = ending.counts.iter().all(|count| count.events_kept.is_some());
        self.losses_known = ending.doubt.is_none()
            && self.unexplained_losses() == 0
            && !self.has_more_than_counted
            && (all_kept || self.damage.count() == 0);
    }
}

/// Counts of one block.
#[derive(Debug, Default)]
struct CountBatch {
    /// Events by id; its length is the largest id seen plus one.
    by_id: Vec<u64>,
    cpu: CpuContents,
    damage: Vec<Damage>,
    stamps: BlockStamps,
}

impl Batch for CountBatch {
    fn clear(&mut self) {
        let mut by_id = std::mem::take(&mut self.by_id);
        by_id.clear();
        *self = Self { by_id, ..Self::default() };
    }

    fn last_stamp_ns(&self) -> Option<u64> {
        // Counting needs no order across CPUs.
        None
    }

    fn set_unreadable(&mut self, damage: Damage) {
        self.damage.push(damage);
    }
}

#[derive(Debug)]
struct Counter<'r> {
    recording: &'r Recording,
    order: ByteOrder,
    type_at: NumberAt,
}

impl<'r> Counter<'r> {
    fn new(recording: &'r Recording) -> Self {
        let type_at = recording.formats().type_at();
        Self { recording, order: recording.abi().order, type_at }
    }
}

impl Decode for Counter<'_> {
    type Batch = CountBatch;

    fn decode(&self, _: usize, input: Input<'_>, block: &Block<'_>, batch: &mut CountBatch) {
        let stream = input.stream;
        let cpu = stream.cpu();
        for (offset, packet, next) in block.packets_and_next() {
            let packet = match packet {
                Ok(packet) => packet,
                Err(bad) => {
                    batch.damage.push(Damage::on_cpu(cpu, offset, bad.to_string()));
                    continue;
                }
            };
            let (last, read) = self.packet(&packet, stream, batch);
            let time = batch.stamps.page(offset, (packet.stamp, last), read, next);
            if let PageTime::OutOfOrder(Some(step)) = time {
                batch.damage.push(stamps::step(cpu, offset, step));
            }
            if let Err(bad) = read {
                batch.damage.push(Damage::on_cpu(cpu, offset, bad.to_string()));
            }
        }
    }
}

impl Counter<'_> {
    /// Counts a packet; returns its last stamp.
    fn packet(
        &self,
        packet: &Packet<'_>,
        stream: &Stream,
        batch: &mut CountBatch,
    ) -> (u64, Result<(), RecordDamage>) {
        let cpu = &mut batch.cpu;
        cpu.pages += 1;
        match packet.missed {
            Missed::Nothing => {}
            Missed::Unknown => cpu.uncounted_losses += 1,
            Missed::Events(count) => cpu.events_lost = cpu.events_lost.saturating_add(count),
        }
        let mut last = None;
        let by_id = &mut batch.by_id;
        let correction = self.recording.correction(stream);
        let result = packet.for_each(|record| {
            let id = self.type_at.read(record.payload, self.order).unwrap_or(0);
            let id = usize::from(id as u16);
            if by_id.len() <= id {
                by_id.resize(id + 1, 0);
            }
            if let Some(count) = by_id.get_mut(id) {
                *count += 1;
            }
            cpu.events += 1;
            if cpu.first_ns.is_none() {
                cpu.first_ns = Some(correction.ns(record.stamp, stream.cpu()));
            }
            last = Some(record.stamp);
        });
        let last_ns = last.map(|stamp| correction.ns(stamp, stream.cpu()));
        cpu.last_ns = cpu.last_ns.max(last_ns);
        (last.unwrap_or(packet.stamp), result)
    }
}

#[derive(Debug)]
struct Sums {
    by_id: Vec<u64>,
    contents: Contents,
    /// One per stream.
    stamps: Vec<StreamStamps>,
}

impl Consume<CountBatch> for Sums {
    fn take(&mut self, stream: usize, mut batch: CountBatch) {
        if self.by_id.len() < batch.by_id.len() {
            self.by_id.resize(batch.by_id.len(), 0);
        }
        for (sum, count) in self.by_id.iter_mut().zip(&batch.by_id) {
            *sum += count;
        }
        if let Some(cpu) = self.contents.cpus.get_mut(stream) {
            cpu.events += batch.cpu.events;
            cpu.pages += batch.cpu.pages;
            cpu.first_ns = [cpu.first_ns, batch.cpu.first_ns].into_iter().flatten().min();
            cpu.last_ns = cpu.last_ns.max(batch.cpu.last_ns);
            cpu.events_lost = cpu.events_lost.saturating_add(batch.cpu.events_lost);
            cpu.uncounted_losses += batch.cpu.uncounted_losses;
            let stamps = self.stamps.get_mut(stream);
            let step = stamps.and_then(|stamps| stamps.block(cpu.cpu, &batch.stamps)).flatten();
            batch.damage.extend(step);
        }
        self.contents.damage.extend(batch.damage.drain(..));
    }

    fn advance(&mut self, _: u64, _: &mut Vec<CountBatch>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl Sums {
    fn new(recording: &Recording) -> Self {
        let empty = |stream: &Stream| CpuContents {
            cpu: stream.cpu(),
            buffer: recording.buffer_name(stream).to_owned(),
            ..CpuContents::default()
        };
        let cpus: Vec<_> = recording.streams().iter().map(empty).collect();
        let stamps = vec![StreamStamps::default(); cpus.len()];
        Self { by_id: Vec::new(), contents: Contents { cpus, ..Contents::default() }, stamps }
    }

    fn finish(mut self, recording: &Recording) -> Contents {
        for (id, count) in self.by_id.iter().enumerate().filter(|(_, count)| **count > 0) {
            let format = u16::try_from(id).ok().and_then(|id| recording.formats().by_id(id));
            let name = format.map_or_else(|| format!("unknown:{id}"), EventFormat::full_name);
            self.contents.events.insert(name, *count);
        }
        self.contents.compare(recording.ending(), recording.is_whole());
        self.contents
    }
}

/// Counts everything in `recording`; `progress` receives the number of bytes read.
#[must_use]
pub fn contents(recording: &Recording, progress: &(dyn Fn(u64) + Sync)) -> Contents {
    let mut sums = Sums::new(recording);
    rounds::run(&Input::all_of(recording), &Counter::new(recording), &mut sums, progress);
    sums.finish(recording)
}

/// Losses of a recording, by a separate pass. `None` if nothing indicates missing events and every page read so
/// far was readable.
#[must_use]
pub fn losses(recording: &Recording) -> Option<Losses> {
    recording.may_lack_events().then(|| losses_by_reading(recording))
}

/// Losses of a recording that was not read yet: the contents of its pages are unknown before.
#[must_use]
pub fn losses_by_reading(recording: &Recording) -> Losses {
    let found = contents(recording, &|_| ());
    let mut losses = Losses::of_container(recording);
    losses.events_lost = found.events_lost();
    losses.uncounted_losses = found.unexplained_losses();
    losses.events_missing = found.events_missing();
    losses.damage.extend(found.damage.as_slice().iter().cloned());
    losses
}

/// [`contents`] and the VMs of [`find_vms`](crate::vms::find_vms) in one pass.
#[must_use]
pub fn contents_and_vms(
    recording: &Recording,
    progress: &(dyn Fn(u64) + Sync),
) -> (Contents, Vec<Vm>) {
    let reading = Reading::of_all_streams(recording);
    let mut vcpus = reading.exits(recording, false, ());
    let mut counts = BlockTask { decoder: Counter::new(recording), consumer: Sums::new(recording) };
    reading.run(&mut [&mut vcpus, &mut counts], progress);
    (counts.consumer.finish(recording), group_vms(recording, &vcpus.finish().vcpus))
}
