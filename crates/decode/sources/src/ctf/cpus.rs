//! The CPUs of events that say it themselves: perf's `perf_cpu`, LTTng's context `cpu_id`. Their packets may
//! say nothing, as those that `perf data convert` makes of samples without a CPU, or hold what several CPUs
//! did.
//!
//! The events of a CPU are collected from all streams of a channel, in the order of their times: neighbours
//! become one part. A packet does not say which CPU a loss concerns, so the loss counts for each CPU.

use std::collections::BTreeMap;
use std::sync::Arc;

use ftrace::ringbuf::Missed;

use super::MAX_CPUS;
use super::parts::Part;
use super::shape::Shape;
use super::stream::Trace;

/// An event takes as many bytes in its stream, on average at least; of more events the CPUs are not looked for.
const MIN_EVENT_BYTES: u64 = 4;

/// A stream of a channel: the CPU that its packets say, and its parts in order.
pub(super) struct Parted {
    pub(super) cpu: Option<u32>,
    pub(super) parts: Vec<Part>,
}

/// An event, or several of one part without any of another CPU between them.
struct Run {
    cpu: u32,
    first_ns: u64,
    last_ns: u64,
    part: Part,
}

/// A place where events are missing, on whichever CPU.
struct Loss {
    ns: u64,
    /// The CPU that has it with its count.
    counted_on: Option<u32>,
    /// Where the next loss is that is counted elsewhere, of all in order.
    next_other: usize,
}

/// Whether events of a class of streams say which CPU they were recorded on.
pub(super) fn are_said(shapes: &[Vec<Shape>], class: usize) -> bool {
    shapes.get(class).is_some_and(|shapes| shapes.iter().any(|shape| shape.cpu_at.is_some()))
}

/// The parts of each CPU; none: there are too many events, or none says its CPU.
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
    /// Whether the next part begins where this one ends, and nothing is missing there.
    fn goes_on_in(&self, next: &Self) -> bool {
        Arc::ptr_eq(&self.packet, &next.packet)
            && self.bits.end == next.bits.start
            && self.is_followed_by(next)
    }
}

/// The result of reading the parts of a channel's streams.
struct CpuSearch<'t> {
    trace: &'t Trace,
    /// Events that there may still be.
    room: u64,
    /// There is one stream: its neighbours are those of the CPU, too.
    is_alone: bool,
    runs: Vec<Run>,
    losses: Vec<Loss>,
}

impl CpuSearch<'_> {
    /// Looks at the events of a part. What doesn't say its CPU is of the one that the packet says, else of the
    /// event before.
    fn part(&mut self, part: &Part, of_packet: Option<u32>, cpu: &mut Option<u32>) -> Option<()> {
        let trace = self.trace;
        let (clock, order) = (trace.clock(part), trace.order);
        let (begin, mut before) = (self.runs.len(), part.cycles);
        let (mut record, mut is_full) = (Vec::new(), false);
        // What is damaged in it is found again when it is read.
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

    /// What is missing around a part is counted with its first and its last event.
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

/// Finds for each loss the next that is counted elsewhere.
fn link(losses: &mut [Loss]) {
    let mut behind = (None, losses.len(), losses.len());
    for (at, loss) in losses.iter_mut().enumerate().rev() {
        let (counted_on, first, other) = behind;
        let is_same = counted_on == Some(loss.counted_on);
        loss.next_other = if is_same { other } else { first };
        behind = (Some(loss.counted_on), at, loss.next_other);
    }
}

/// Marks the losses that are counted elsewhere where they lie among the events of a CPU.
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
