//! CPUs of events that have a CPU field: perf's `perf_cpu`, LTTng's context `cpu_id`. Their packets
//! may have no CPU, as with `perf data convert` for samples without a CPU, or contain events of
//! several CPUs.
//!
//! The events of a CPU are collected from all streams of a channel in time order: adjacent events
//! become one part. A packet does not say which CPU a loss concerns, so the loss counts for each
//! CPU.

use std::collections::BTreeMap;
use std::sync::Arc;

use ftrace::ringbuf::Missed;

use super::MAX_CPUS;
use super::parts::Part;
use super::shape::Shape;
use super::stream::Trace;

/// Minimum average size of an event in its stream; if there are more events, their CPUs are not
/// evaluated.
const MIN_EVENT_BYTES: u64 = 4;

/// A stream of a channel: the CPU of its packets, and its parts in order.
pub(super) struct Parted {
    pub(super) cpu: Option<u32>,
    pub(super) parts: Vec<Part>,
}

/// Consecutive events of one part on the same CPU.
struct Run {
    cpu: u32,
    first_ns: u64,
    last_ns: u64,
    part: Part,
}

/// A place where events are missing, on an unknown CPU.
struct Loss {
    ns: u64,
    /// The CPU that accounts for the loss.
    counted_on: Option<u32>,
    /// Index of the next loss, in order, that another CPU accounts for.
    next_other: usize,
}

/// Whether the events of a stream class have a CPU field.
pub(super) fn are_said(shapes: &[Vec<Shape>], class: usize) -> bool {
    shapes.get(class).is_some_and(|shapes| shapes.iter().any(|shape| shape.cpu_at.is_some()))
}

/// The parts of each CPU; `None` if there are too many events, or if no event has a CPU.
pub(super) fn by_cpu(trace: &Trace, streams: &[Parted]) -> Option<BTreeMap<u32, Vec<Part>>> {
    let bytes: u64 = streams.iter().flat_map(|stream| &stream.parts).map(Part::len).sum();
    let (room, is_alone) = (bytes / MIN_EVENT_BYTES, streams.len() == 1);
    let (runs, losses) = (Vec::new(), Vec::new());
    let mut found = CpuSearch { trace, room, is_alone, runs, losses };
    for stream in streams {
        let mut cpu = stream.cpu;
        for part in &stream.parts {
            found.part(part, stream.cpu, &mut cpu)?;
        }
    }
    let CpuSearch { mut runs, mut losses, .. } = found;
    runs.sort_by_key(|run| (run.cpu, run.first_ns));
    losses.sort_by_key(|loss| loss.ns);
    link(&mut losses);
    let mut cpus: BTreeMap<u32, Vec<Run>> = BTreeMap::new();
    for run in runs {
        let cpu_runs = cpus.entry(run.cpu).or_default();
        match cpu_runs.last_mut() {
            Some(last) if last.part.goes_on_in(&run.part) => last.join(run),
            _ => cpu_runs.push(run),
        }
    }
    let parts = |(cpu, mut runs): (u32, Vec<Run>)| {
        mark(cpu, &mut runs, &losses);
        (cpu, runs.into_iter().map(|run| run.part).collect())
    };
    Some(cpus.into_iter().map(parts).collect())
}

impl Run {
    fn join(&mut self, next: Self) {
        self.last_ns = next.last_ns;
        self.part.bits.end = next.part.bits.end;
        self.part.behind = next.part.behind;
    }
}

impl Part {
    /// Whether the next part begins where this one ends, without a loss in between.
    fn goes_on_in(&self, next: &Self) -> bool {
        Arc::ptr_eq(&self.packet, &next.packet)
            && self.bits.end == next.bits.start
            && self.is_followed_by(next)
    }
}

/// The result of reading the parts of a channel's streams.
struct CpuSearch<'t> {
    trace: &'t Trace,
    /// Remaining number of events.
    room: u64,
    /// There is a single stream: adjacent events in it are adjacent on their CPU.
    is_alone: bool,
    runs: Vec<Run>,
    losses: Vec<Loss>,
}

impl CpuSearch<'_> {
    /// Reads the events of a part. An event without a CPU gets that of its packet, otherwise that
    /// of the previous event.
    fn part(&mut self, part: &Part, of_packet: Option<u32>, cpu: &mut Option<u32>) -> Option<()> {
        let trace = self.trace;
        let (clock, order) = (trace.clock(part), trace.order);
        let (begin, mut before) = (self.runs.len(), part.cycles);
        let (mut record, mut is_full) = (Vec::new(), false);
        // Damage is reported when the part is read again.
        let _ = trace.each(part, |shape, cycles, at, events| {
            record.clear();
            if shape.cpu_at.is_some() {
                shape.write(events, order, &mut record)?;
            }
            let event_cpu = shape.cpu(&record, order).filter(|&cpu| u64::from(cpu) < MAX_CPUS);
            *cpu = event_cpu.or(of_packet).or(*cpu);
            let (current_cpu, ns) = (cpu.unwrap_or(0), clock.nearest_ns(cycles));
            let cycles_before = std::mem::replace(&mut before, cycles);
            let is_neighbour = self.is_alone || event_cpu.is_none() || event_cpu == of_packet;
            if let Some(last) = self.runs.get_mut(begin..).and_then(<[Run]>::last_mut) {
                if last.cpu == current_cpu && last.last_ns <= ns && is_neighbour {
                    last.last_ns = ns;
                    return Ok(());
                }
                last.part.bits.end = at;
            }
            is_full = self.runs.len() as u64 > self.room;
            if is_full {
                return Err(ctf::Short { at, what: "its sequence has too many events" });
            }
            let (bits, none) = (at..part.bits.end, Missed::Nothing);
            let part =
                Part { bits, cycles: cycles_before, before: none, behind: none, ..part.clone() };
            self.runs.push(Run { cpu: current_cpu, first_ns: ns, last_ns: ns, part });
            Ok(())
        });
        self.take_losses(part, begin);
        (!is_full).then_some(())
    }

    /// The losses around a part are accounted to the CPUs of its first and last event.
    fn take_losses(&mut self, part: &Part, begin: usize) {
        let clock = self.trace.clock(part);
        if part.before != Missed::Nothing {
            let first = self.runs.get_mut(begin);
            let ns = first.as_ref().map_or(clock.nearest_ns(part.cycles), |run| run.first_ns);
            let counted_on = first.map(|run| {
                run.part.before = part.before;
                run.cpu
            });
            self.losses.push(Loss { ns, counted_on, next_other: 0 });
        }
        if part.behind != Missed::Nothing {
            let last = self.runs.get_mut(begin..).and_then(<[Run]>::last_mut);
            let end = part.packet.end.unwrap_or(part.cycles);
            let ns = last.as_ref().map_or(clock.nearest_ns(end), |run| run.last_ns);
            let counted_on = last.map(|run| {
                run.part.behind = part.behind;
                run.cpu
            });
            self.losses.push(Loss { ns, counted_on, next_other: 0 });
        }
    }
}

/// Links each loss to the next one that another CPU accounts for.
fn link(losses: &mut [Loss]) {
    let mut behind = (None, losses.len(), losses.len());
    for (at, loss) in losses.iter_mut().enumerate().rev() {
        let (counted_on, first, other) = behind;
        let is_same = counted_on == Some(loss.counted_on);
        loss.next_other = if is_same { other } else { first };
        behind = (Some(loss.counted_on), at, loss.next_other);
    }
}

/// Marks losses accounted to other CPUs that lie among the events of this CPU.
fn mark(cpu: u32, runs: &mut [Run], losses: &[Loss]) {
    let lies_in = |from_ns: u64, to_ns: u64| {
        let first = losses.partition_point(|loss| loss.ns < from_ns);
        let end = losses.partition_point(|loss| loss.ns <= to_ns);
        let loss = losses.get(first).filter(|_| first < end);
        loss.is_some_and(|loss| loss.counted_on != Some(cpu) || loss.next_other < end)
    };
    let mut from_ns = 0;
    for run in runs.iter_mut() {
        if run.part.before == Missed::Nothing && lies_in(from_ns, run.first_ns) {
            run.part.before = Missed::Unknown;
        }
        from_ns = run.last_ns;
    }
    if let Some(last) = runs.last_mut()
        && last.part.behind == Missed::Nothing
        && lies_in(last.last_ns, u64::MAX)
    {
        last.part.behind = Missed::Unknown;
    }
}
