//! Handlers of interrupts and soft interrupts, of hosts and guests: how often, how long, whom they interrupted, and of a
//! guest's what the host took of their time.
//!
//! A handler lasts from its `*_entry` to its `*_exit` event on the same CPU. Its own time is without handlers that
//! interrupted it, so that own times add up. Where a guest's recording lies over its host's, the time in which its vCPU was
//! not in the guest is known: a handler that "took 5 ms" may have run for 20 us.

mod open_handlers;
mod sources;
mod sums;

use std::cmp::Reverse;

use ::sources::Recording;
use rustc_hash::FxHashMap;
use timeline::Losses;
use timeline::cycles::SWITCH_TAG;
use timeline::trace_events::{Gap, TraceEvent, each_trace_event_and_names};

use self::open_handlers::OpenHandlers;
use self::sources::{IRQ_NAMES, Sources};
use self::sums::{AllSums, Handler, Key};
use crate::align::GuestAlignment;
use crate::critical::machine_names;
use crate::states::{
    Besides, GuestCpu, HandlerEdge, OccupantSpan, StateSink, StateSpan, VcpuRef, VcpuState,
    handler_of, states_by,
};

pub use self::sources::HandlerKind;
pub(crate) use self::sources::softirq_name;
pub use self::sums::HandlerSums;

/// What rows are of, within a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// A handler on all CPUs.
    Handler,
    /// A handler on one CPU.
    Cpu,
    /// A handler while one thread had the CPU.
    Thread,
}

/// Handlers of one kind and name.
#[derive(Clone, Debug)]
pub struct HandlerRow {
    /// Index of the recording.
    pub recording: usize,
    /// The kind.
    pub kind: HandlerKind,
    /// Number of the interrupt, or of the soft one; `None`: it has none.
    pub number: Option<u64>,
    /// Of an interrupt what its handler is called, of a soft one and a vector the kernel's name.
    pub name: Option<String>,
    /// The CPU, of [`By::Cpu`].
    pub cpu: Option<u32>,
    /// Id of the thread that was interrupted, and its name, of [`By::Thread`].
    pub thread: Option<(u32, Option<String>)>,
    /// The numbers.
    pub sums: HandlerSums,
}

/// Handlers of interrupts of some recordings that are read as one.
#[derive(Debug)]
pub struct Irqs {
    /// Those with most of their own time first, by machine.
    pub rows: Vec<HandlerRow>,
    /// By recording, what its machine is called.
    pub machines: Vec<String>,
    /// By recording, its first and last time.
    pub spans_ns: Vec<Option<(u64, u64)>>,
    /// By recording: whether it has events for handlers.
    pub is_recorded: Vec<bool>,
    /// Ends of handlers that began before the recording or while events were lost.
    pub ends_alone: u64,
    /// Handlers for which no row was left.
    pub left_out: u64,
    /// By recording.
    pub losses: Vec<Losses>,
    /// Whether times are nanoseconds.
    pub nanoseconds: bool,
}

/// Whether a recording can have events of handlers: known before it is read.
#[must_use]
pub fn has_handlers(recording: &Recording) -> bool {
    let sources = Sources::new(std::slice::from_ref(recording));
    recording.formats().iter().any(|(_, format)| sources.of(format).is_some())
}

/// The handlers of `recordings`, of which `guests` says who is whose guest; they must have been applied. `tick` gets the
/// bytes done.
#[must_use]
pub fn irqs(
    recordings: &[Recording],
    guests: &[GuestAlignment],
    by: By,
    tick: &(dyn Fn(u64) + Sync),
) -> Irqs {
    let sources = Sources::new(recordings);
    let mut sink = IrqSink::new(guests, by);
    let source_of = |format: &eventfmt::EventFormat| sources.of(format);
    let besides = Besides::Handlers(&source_of);
    let (states, names) = states_by(recordings, guests, besides, &mut sink, |asked| {
        each_trace_event_and_names(recordings, asked, IRQ_NAMES, tick)
    });
    let (sums, ends_alone) = sink.finish();
    let name = |key: &Key| {
        let of_number = names.get(&(key.recording.into(), key.number)).cloned();
        match sources.kind(key.source) {
            (HandlerKind::Irq, _) => of_number,
            (HandlerKind::Softirq, _) => softirq_name(key.number).map(str::to_owned),
            (_, name) => name.map(str::to_owned),
        }
    };
    let thread_names = &states.pass.names;
    let thread = |at: usize, id: u32| {
        let of_events = thread_names.get(at).and_then(|names| names.of(id));
        let name = of_events.or_else(|| recordings.get(at)?.comm(id));
        (id, if id == 0 { Some("idle".to_owned()) } else { name.map(str::to_owned) })
    };
    let row = |(key, sums): (Key, HandlerSums)| {
        let kind = sources.kind(key.source).0;
        let recording = usize::from(key.recording);
        HandlerRow {
            recording,
            kind,
            number: matches!(kind, HandlerKind::Irq | HandlerKind::Softirq).then_some(key.number),
            name: name(&key),
            cpu: key.part.filter(|_| by == By::Cpu),
            thread: key.part.filter(|_| by == By::Thread).map(|id| thread(recording, id)),
            sums,
        }
    };
    let left_out = sums.left_out;
    let mut rows: Vec<HandlerRow> = sums.rows.into_iter().map(row).collect();
    rows.sort_by_key(|row| (row.recording, Reverse((row.sums.own_ns, row.sums.begun))));
    Irqs {
        rows,
        machines: machine_names(recordings, guests),
        spans_ns: states.pass.spans_ns,
        is_recorded: recordings.iter().map(has_handlers).collect(),
        ends_alone,
        left_out,
        losses: states.pass.losses,
        nanoseconds: recordings.iter().all(Recording::is_nanoseconds),
    }
}

/// Puts handlers and the states of the vCPUs that they run on together.
struct IrqSink {
    cpus: FxHashMap<GuestCpu, OpenHandlers>,
    /// By CPU and number of a soft interrupt: since when it is due.
    due: FxHashMap<(GuestCpu, u64), u64>,
    /// By the host's recording and thread, the guest's CPU that it is.
    guest_cpus: FxHashMap<(u16, u32), GuestCpu>,
    vcpus: FxHashMap<VcpuRef, GuestCpu>,
    sums: AllSums,
    ends_alone: u64,
}

impl IrqSink {
    fn new(guests: &[GuestAlignment], by: By) -> Self {
        let mut sink = Self {
            cpus: FxHashMap::default(),
            due: FxHashMap::default(),
            guest_cpus: FxHashMap::default(),
            vcpus: FxHashMap::default(),
            sums: AllSums::new(by),
            ends_alone: 0,
        };
        for alignment in guests {
            let rows = alignment.result().map_or(&[][..], |result| &result.rows);
            let host = u16::try_from(alignment.host).unwrap_or(u16::MAX);
            let recording = u16::try_from(alignment.guest).unwrap_or(u16::MAX);
            for row in rows {
                let Ok(cpu) = u16::try_from(row.guest_cpu) else { continue };
                let cpu = GuestCpu { recording, cpu };
                sink.guest_cpus.insert((host, row.thread), cpu);
                sink.cpus.insert(cpu, OpenHandlers::new(true));
            }
        }
        sink
    }

    fn finish(mut self) -> (AllSums, u64) {
        for (cpu, open) in self.cpus {
            open.finish(&mut |handler| self.sums.add(cpu.recording, handler));
        }
        (self.sums, self.ends_alone)
    }

    fn begin(&mut self, at: GuestCpu, event: &TraceEvent, source: u8) {
        let number = event.value(0).unwrap_or(0);
        let (from_ns, cpu, thread) = (event.stamp_ns, event.cpu, event.thread);
        let is_soft = source == sources::SOFTIRQ;
        let due_since_ns = if is_soft { self.due.remove(&(at, number)) } else { None };
        let due_ns = due_since_ns.map(|since_ns| from_ns.saturating_sub(since_ns));
        let handler =
            Handler { source, number, cpu, thread, from_ns, due_ns, ..Handler::default() };
        let sums = &mut self.sums;
        sums.begin(at.recording, &handler);
        let open = self.cpus.entry(at).or_default();
        open.begin(handler, &mut |handler| sums.add(at.recording, handler));
    }

    fn end(&mut self, at: GuestCpu, event: &TraceEvent, source: u8) {
        let of = (source, event.value(0).unwrap_or(0));
        let sums = &mut self.sums;
        let open = self.cpus.entry(at).or_default();
        let had_begun =
            open.end(of, event.stamp_ns, &mut |handler: &Handler| sums.add(at.recording, handler));
        self.ends_alone = self.ends_alone.saturating_add(u64::from(!had_begun));
    }
}

/// Soft interrupts that are due, at most: ten a CPU.
const MOST_DUE: usize = 1 << 20;

impl StateSink for IrqSink {
    fn vcpu(&mut self, vcpu: VcpuRef, span: &StateSpan) {
        let Some(&at) = self.vcpus.get(&vcpu) else { return };
        // Where the vCPU was is not known: what is placed there says nothing of the host.
        if span.state == VcpuState::Unknown {
            return;
        }
        let sums = &mut self.sums;
        let Some(open) = self.cpus.get_mut(&at) else { return };
        open.state((span.from_ns, span.to_ns), span.state.is_guest(), &mut |handler| {
            sums.add(at.recording, handler);
        });
    }

    fn runs_in(&mut self, vcpu: VcpuRef, thread: u32) {
        if let Some(&at) = self.guest_cpus.get(&(vcpu.recording, thread)) {
            self.vcpus.insert(vcpu, at);
        }
    }

    fn task(&mut self, _: GuestCpu, _: u32, _: &StateSpan) {}

    fn cpu(&mut self, _: GuestCpu, _: &OccupantSpan) {}

    fn event(&mut self, event: &TraceEvent) {
        let at = GuestCpu { recording: event.recording, cpu: event.cpu };
        if event.tag == SWITCH_TAG {
            // No handler goes on beyond a switch: what seems so has lost its end.
            if let Some(open) = self.cpus.get_mut(&at) {
                open.abandon();
            }
            return;
        }
        match handler_of(event.tag) {
            Some((source, HandlerEdge::Begins)) => self.begin(at, event, source),
            Some((source, HandlerEdge::Ends)) => self.end(at, event, source),
            Some((_, HandlerEdge::Due)) if self.due.len() < MOST_DUE => {
                if let Some(number) = event.value(0) {
                    self.due.entry((at, number)).or_insert(event.stamp_ns);
                }
            }
            Some((_, HandlerEdge::Due)) | None => {}
        }
    }

    fn gap(&mut self, gap: &Gap) {
        let at = GuestCpu { recording: gap.recording, cpu: gap.cpu };
        if let Some(open) = self.cpus.get_mut(&at) {
            open.abandon();
        }
        self.due.retain(|(of, _), _| *of != at);
    }
}
